"""What an audit found of a manifest, read from the file that ``curation audit`` wrote, for a publication's card."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from curation.errors import PublishError
from curation.storage import read_bytes

_MAX_BYTES = 64 << 20
_MOST_RULES = 200
_NOT_SHOWN = {
    "fail": "how much a score changes by it",
    "warn": "that a score is wrong by it",
    "info": "that anything is amiss",
    "undecidable": "that the rule holds, or that it is broken",
}
"""What no rule shows by its verdict, where the rule itself says nothing of that."""


class RuleFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of a rule."""

    verdict: str
    about: str
    count: int = 0
    text: str = ""


class AuditedRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule with its verdict."""

    rule: str
    severity: str
    verdict: str
    definition: str
    count: int = 0
    missing: list[str] = []
    does_not_show: str = ""
    findings: list[RuleFinding] = []

    @property
    def found(self) -> str:
        """What was found, in the words of the first finding that made the verdict, and how many more there are."""
        own = [one for one in self.findings if one.verdict == self.verdict]
        if not own:
            return f"{self.count:,}"
        rest = f" (and {len(own) - 1} more)" if len(own) > 1 else ""
        return f"{own[0].about}: {own[0].text}".strip(": ") + rest

    @property
    def not_shown(self) -> str:
        """What that does not show."""
        return self.does_not_show or _NOT_SHOWN.get(self.verdict, "")


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts of an audit of one manifest."""

    digest: str
    target: str
    tally: dict[str, int]
    rules: list[AuditedRule]

    def of(self, *verdicts: str) -> list[AuditedRule]:
        """Return the rules of some verdicts, in the order of the verdicts."""
        return [one for verdict in verdicts for one in self.rules if one.verdict == verdict]


def read_audits(paths: Sequence[Path], digests: Sequence[str]) -> dict[str, Audit]:
    """Return audits by the digest of their manifest.

    Parameters
    ----------
    paths : sequence of Path
        Files that ``curation audit MANIFEST --json`` printed, or ``audit.json`` of its ``--out``.
    digests : sequence of str
        Of the manifests that are published.

    Raises
    ------
    MissingFileError
        A file cannot be read.
    PublishError
        A file is no audit of a manifest, or of another manifest, or two are of one.
    """
    found: dict[str, Audit] = {}
    for path in paths:
        audit = _read(path)
        if audit.digest not in digests:
            raise PublishError(
                "The audit is of another manifest",
                where=f"--audit {path}",
                expected=" or ".join(digests),
                found=ascii(audit.digest[:80])[1:-1],
                hint="curation audit MANIFEST --out DIR, and --audit DIR/audit.json",
            )
        if audit.digest in found:
            raise PublishError("Two audits are of one manifest", where=f"--audit {path}", found=audit.digest)
        found[audit.digest] = audit
    return found


def _read(path: Path) -> Audit:
    data = read_bytes(path, kind="audit", most=_MAX_BYTES, error=PublishError)
    try:
        audit = msgspec.json.decode(data, type=Audit)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PublishError(
            "This is no audit of a manifest",
            where=f"--audit {path}",
            expected="what curation audit MANIFEST --json prints",
            found=ascii(str(error)[:200])[1:-1],
        ) from None
    if len(audit.rules) > _MOST_RULES:
        raise PublishError("An audit has too many rules", where=f"--audit {path}", expected=f"at most {_MOST_RULES}")
    return audit
