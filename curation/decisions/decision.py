"""`Decision`: one human verdict on one image, the row that a decisions file holds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

import msgspec

from curation.errors import DecisionError, ImageIdError
from curation.ids import parse_image_id
from curation.manifest.header import DIGEST, PART_NAME

Stage = Literal["auto_override", "manual", "candidate"]
Action = Literal["keep", "remove", "keep_near", "to_near", "to_far", "add_near", "add_far", "reject", "unsure"]

ACTIONS_OF: dict[Stage, tuple[Action, ...]] = {
    "auto_override": ("keep", "remove", "keep_near", "unsure"),
    "manual": ("keep", "remove", "to_near", "to_far", "unsure"),
    "candidate": ("add_near", "add_far", "reject", "unsure"),
}
"""The actions of each stage. ``unsure`` abstains; ``keep`` and ``reject`` leave the image where it is."""

STAGES: tuple[Stage, ...] = get_args(Stage)
"""In the order in which they are replayed."""

LONGEST_TEXT = 1000
LONGEST_REVIEWER = 100
_SEVERAL_PEOPLE = re.compile(r"[,;|&+/]|\sand\s", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|\+00:00))?", re.ASCII)


class Decision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One verdict of one reviewer on one image, at one stage.

    Attributes
    ----------
    image_id : str
        Namespaced: ``coco:000000013159``.
    dataset : str
        The pool that it speaks of (``coco``, ``openimages``), or a part of a manifest.
    stage : {"auto_override", "manual", "candidate"}
        Which step of the making it corrects (section 1.5 of the FindMeIfYouCan protocol).
    action : str
        One of `ACTIONS_OF` the stage.
    reason, reviewer, batch : str
        ``""`` where they are not recorded.
    date : str
        ISO 8601, a day or a moment in UTC; ``""`` where it is not recorded.
    manifest : str
        Digest of the manifest that the reviewer looked at; ``""`` where it is not recorded.
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
    """Raise `DecisionError` unless the fields of a decision are well formed and its action is one of its stage.

    Parameters
    ----------
    where : str
        File and line, for the message.
    """
    _check_image(decision.image_id, where)
    if decision.action not in ACTIONS_OF.get(decision.stage, ()):
        actions = ", ".join(ACTIONS_OF.get(decision.stage, ()))
        _refuse(where, "action", f"at stage {decision.stage!s:.40}: {actions}", f"{decision.action!s}")
    if decision.dataset and not re.fullmatch(PART_NAME, decision.dataset):
        _refuse(where, "dataset", "a pool such as coco, or the name of a part", decision.dataset)
    _check_reviewer(decision.reviewer, where)
    for field in ("reason", "batch"):
        _check_line(getattr(decision, field), where, field, LONGEST_TEXT)
    if decision.date and moment_of(decision) is None:
        _refuse(where, "date", "ISO 8601 in UTC: 2025-03-01 or 2025-03-01T14:05:00Z", decision.date)
    if decision.manifest and not re.fullmatch(DIGEST, decision.manifest):
        _refuse(where, "manifest", "a digest sha256:…", decision.manifest)


def moment_of(decision: Decision) -> datetime | None:
    """Return when a decision was made, a day as its first moment; None where the date is missing or malformed."""
    if not _DATE.fullmatch(decision.date):
        return None
    try:
        moment = datetime.fromisoformat(decision.date)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.utcoffset() in (None, timedelta(0)) else None


def row_of(decision: Decision) -> dict[str, str]:
    """Return a decision as a dict of its fields in their order."""
    return {name: getattr(decision, name) for name in decision.__struct_fields__}


def sort_key(decision: Decision) -> tuple[str, ...]:
    """Return what orders decisions in files and digests: pool, image, stage, then the rest."""
    return (decision.dataset, decision.image_id, decision.stage, *row_of(decision).values())


def _check_image(text: str, where: str) -> None:
    try:
        parse_image_id(text)
    except ImageIdError as error:
        raise DecisionError(
            error.what,
            where=f"{where}: image_id",
            expected=error.expected,
            found=error.found or repr(text[:80]),
        ) from None


def _check_reviewer(text: str, where: str) -> None:
    _check_line(text, where, "reviewer", LONGEST_REVIEWER)
    if _SEVERAL_PEOPLE.search(text):
        raise DecisionError(
            "A decision names more than one reviewer",
            where=f"{where}: reviewer",
            expected="one name, without , ; | & + / or 'and': each verdict of each reviewer is a line of its own",
            found=repr(text[:80]),
        )


def _check_line(text: str, where: str, field: str, longest: int) -> None:
    if len(text) > longest or (text and not text.isprintable()):
        _refuse(where, field, f"one line of at most {longest} printable characters", text)


def _refuse(where: str, field: str, expected: str, found: str) -> None:
    raise DecisionError(
        f"A decision has a malformed {field}",
        where=f"{where}: {field}",
        expected=expected,
        found=ascii(found[:80]),
    )
