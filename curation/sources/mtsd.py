"""Reader of MTSD: being merged."""

OTHER_SIGN = "other-sign"
