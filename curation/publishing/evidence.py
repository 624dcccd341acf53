"""The decisions behind a reviewed manifest: held against the digest that it names, and published beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from curation.decisions.decision import Decision, sort_key
from curation.decisions.resolution import decisions_digest, recorded_digest, recorded_form, resolve
from curation.errors import CurationError, PublishError
from curation.manifest.manifest import Manifest

EVIDENCE_FILE = "decisions.jsonl"


def evidence_of(manifest: Manifest, decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Return the decisions that made a manifest, sorted, each once.

    They are those given, or what the manifest's rule for conflicts makes of them.

    Raises
    ------
    PublishError
        The manifest names no decisions, or others than these.
    """
    header = manifest.header
    where = f"{header.name} {header.version}"
    if header.decisions is None:
        raise PublishError("The manifest was not reviewed, so there is no evidence to publish", where=where)
    rows = list(decisions)
    found = decisions_digest(rows)
    for candidate in _candidates(rows, str(header.rule.parameters.get("review_rule", "error"))):
        if header.decisions in (decisions_digest(candidate), recorded_digest(recorded_form(candidate))):
            return tuple(sorted(set(candidate), key=sort_key))
    raise PublishError(
        "These are not the decisions that made the manifest",
        where=where,
        expected=header.decisions,
        found=f"{len(rows)} decisions, {found}",
        hint="curation decisions FILE --rule RULE --out RESOLVED.jsonl, and --decisions RESOLVED.jsonl",
    )


def evidence_bytes(evidence: Sequence[Decision]) -> bytes:
    """Return decisions as JSON Lines."""
    return b"".join(msgspec.json.encode(one) + b"\n" for one in evidence)


def _candidates(rows: Sequence[Decision], rule: str) -> Iterator[Sequence[Decision]]:
    yield rows
    for name in dict.fromkeys((rule, "error", "majority")):
        try:
            yield resolve(rows, name, allow_conflicts=name == "error").decisions  # type: ignore[arg-type]
        except CurationError:
            # The rule needs what is not known here (who is senior), or is none: the next candidate may fit.
            continue
