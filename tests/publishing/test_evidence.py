"""Evidence: the decisions that a manifest names, and no others."""

from __future__ import annotations

import pytest

from curation.core.errors import PublishError
from curation.publishing.member import decisions_behind
from curation.review.decisions.decision import Decision
from curation.review.decisions.resolution import decisions_digest, recorded_digest, recorded_form, resolve
from tests.publishing.published_world import changed, tiny

MANIFEST = tiny()[0]


def decision(image: int, action: str, reviewer: str, date: str = "") -> Decision:
    return Decision(
        image_id=f"coco:{image:012d}",
        dataset="wilderness",
        stage="manual",
        action=action,  # type: ignore[arg-type]
        reviewer=reviewer,
        date=date,
    )


ROWS = [
    decision(9, "keep", "anna", "2025-01-01"),
    decision(9, "remove", "anna", "2025-01-02"),
    decision(100, "remove", "ben"),
]


def test_given_decisions_are_resolved_as_the_manifest_was() -> None:
    resolution = resolve(ROWS)
    assert len(resolution.decisions) == 2
    reviewed = changed(MANIFEST, decisions=resolution.digest)
    assert decisions_behind(reviewed, ROWS) == resolution.decisions
    assert decisions_behind(reviewed, resolution.decisions[::-1]) == resolution.decisions


def test_the_rule_of_the_manifest_is_followed() -> None:
    rows = [*ROWS[1:], decision(100, "keep", "cleo"), decision(100, "keep", "dan")]
    resolution = resolve(rows, "majority")
    rule = changed(MANIFEST).header.rule
    parameters = {**rule.parameters, "review_rule": "majority"}
    named = type(rule)(protocol="hand", algorithm_version=1, parameters=parameters)
    reviewed = changed(MANIFEST, decisions=resolution.digest, rule=named)
    assert decisions_behind(reviewed, rows) == resolution.decisions


def test_decisions_that_a_protocol_replayed_are_found_by_their_recorded_form() -> None:
    digest = recorded_digest(recorded_form(ROWS[1:]))
    assert decisions_behind(changed(MANIFEST, decisions=digest), ROWS[1:]) == tuple(resolve(ROWS[1:]).decisions)


def test_other_decisions_are_refused() -> None:
    reviewed = changed(MANIFEST, decisions=decisions_digest(ROWS[1:]))
    with pytest.raises(PublishError, match="not those of") as refused:
        decisions_behind(reviewed, ROWS[2:])
    assert refused.value.expected == reviewed.header.decisions
    with pytest.raises(PublishError, match="not reviewed"):
        decisions_behind(MANIFEST, ROWS)
