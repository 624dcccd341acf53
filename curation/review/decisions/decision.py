"""`Decision`: the judgement of a person on one image, one row of a decisions file."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Literal, get_args

import msgspec

from curation.core.errors import DecisionError, ImageIdError
from curation.core.ids import parse_image_id
from curation.manifest.header import DIGEST, PART_NAME
from curation.sources.datasets import namespace_of

Stage = Literal["auto_override", "manual", "candidate", "pair"]
Action = Literal[
    "keep", "remove", "keep_near", "to_near", "to_far", "add_near", "add_far", "reject", "unsure", "same", "different"
]

ACTIONS: dict[Stage, dict[str, Action]] = {
    "auto_override": {"keep": "keep", "remove": "remove", "near": "keep_near", "unsure": "unsure"},
    "manual": {"keep": "keep", "remove": "remove", "near": "to_near", "far": "to_far", "unsure": "unsure"},
    "candidate": {"remove": "reject", "near": "add_near", "far": "add_far", "unsure": "unsure"},
    "pair": {"same": "same", "different": "different", "unsure": "unsure"},
}
"""The action that each word of a reviewer means at each stage (section 1.5 of the FindMeIfYouCan protocol).

A candidate is in no split yet, so there is nothing to ``keep``; an override of the automatic stage removes an image or
moves it to near, so it has no ``far``. ``unsure`` abstains; ``keep`` and ``reject`` leave the image where it is. A pair
of photos is the same photo or two (`curation.review.decisions.pairs`).
"""
IN_DISTRIBUTION: tuple[Action, ...] = ("remove", "reject")
"""The actions for an image that shows an ID class, or is unfit."""

STAGES: tuple[Stage, ...] = get_args(Stage)
"""All stages, in the order of replay."""

_SEVERAL_PEOPLE = re.compile(r"[,;|&+/]|\sand\s", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|\+00:00))?", re.ASCII)


_SPLITS = ("near", "far", "farther")


def namespace_of_pool(dataset: str) -> str:
    """Return the namespace of the ids of a pool, or of its splits.

    >>> namespace_of_pool("coco"), namespace_of_pool("coco-far")
    ('coco', 'coco')

    Raises
    ------
    ImageIdError
        See `namespace_of`.
    """
    pool, _, split = dataset.rpartition("-")
    return namespace_of(pool if split in _SPLITS else dataset)


class Decision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The decision of a reviewer on an image, at a stage.

    Attributes
    ----------
    image_id : str
        Namespaced: ``coco:000000013159``.
    dataset : str
        The pool that it applies to (``coco``, ``openimages``), or a part of a manifest.
    stage : {"auto_override", "manual", "candidate", "pair"}
        The step that it corrects (section 1.5 of the FindMeIfYouCan protocol), or a pair of photos.
    action : str
        One of the actions of the stage in `ACTIONS`.
    reason, reviewer, batch : str
        ``""`` if not recorded.
    date : str
        ISO 8601, a day or a moment in UTC; ``""`` if not recorded.
    manifest : str
        Digest of the manifest that the reviewer looked at; ``""`` if not recorded.
    """

    image_id: str
    dataset: str
    stage: Stage
    action: Action
    reason: str = ""
    reviewer: str = ""
    date: str = ""
    manifest: str = ""
    batch: str = ""


def check_decision(decision: Decision, *, where: str) -> None:
    """Raise `DecisionError` if a field of a decision is malformed, or its stage does not have its action.

    Parameters
    ----------
    where : str
        File and line, for the message.
    """
    try:
        parse_image_id(decision.image_id)
    except ImageIdError as error:
        excerpt = error.found or repr(decision.image_id[:80])
        raise DecisionError(error.what, where=f"{where}: image_id", expected=error.expected, found=excerpt) from None
    if _SEVERAL_PEOPLE.search(decision.reviewer):
        raise DecisionError(
            "A decision names more than one reviewer",
            where=f"{where}: reviewer",
            expected="one name, without , ; | & + / or 'and': each decision of each reviewer has its own line",
            found=repr(decision.reviewer[:80]),
        )
    actions = ACTIONS.get(decision.stage, {}).values()
    forms = {
        "action": (decision.action in actions, f"at stage {decision.stage!s:.40}: {', '.join(actions)}"),
        "dataset": (_matches(PART_NAME, decision.dataset), "a pool such as coco, or the name of a part"),
        "reviewer": (is_line(decision.reviewer, 100), "one line of at most 100 printable characters"),
        "reason": (is_line(decision.reason), "one line of at most 1000 printable characters"),
        "batch": (is_line(decision.batch), "one line of at most 1000 printable characters"),
        "date": (not decision.date or moment_of(decision), "ISO 8601 in UTC: 2025-03-01 or 2025-03-01T14:05:00Z"),
        "manifest": (_matches(DIGEST, decision.manifest), "a digest sha256:…"),
    }
    for field, (is_sound, expected) in forms.items():
        if not is_sound:
            excerpt = ascii(getattr(decision, field)[:80])
            message = f"A decision has a malformed {field}"
            raise DecisionError(message, where=f"{where}: {field}", expected=expected, found=excerpt)


def is_line(text: str, longest: int = 1000) -> bool:
    """Return whether a text is one line of printable characters, or empty."""
    return len(text) <= longest and (not text or text.isprintable())


def moment_of(decision: Decision) -> datetime | None:
    """Return the moment of a decision, for a day its first; None if the date is missing or malformed."""
    if not _DATE.fullmatch(decision.date):
        return None
    try:
        return datetime.fromisoformat(decision.date).replace(tzinfo=UTC)
    except ValueError:
        return None


def row_of(decision: Decision) -> dict[str, str]:
    """Return a decision as a dict of its fields in their order."""
    return msgspec.structs.asdict(decision)


def sort_key(decision: Decision) -> tuple[str, ...]:
    """Return the sort key of decisions in files and digests: pool, image, stage, then the other fields."""
    return (decision.dataset, decision.image_id, decision.stage, *msgspec.structs.astuple(decision))


def _matches(pattern: str, text: str) -> bool:
    return not text or re.fullmatch(pattern, text) is not None
