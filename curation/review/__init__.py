"""Human judgement: proposals, decisions, the FiftyOne App."""
