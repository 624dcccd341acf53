"""The guide of a review: its question, the meaning of each decision, and reasons on the keys 1 to 9."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from curation.core.errors import ReviewError
from curation.core.files import read_bytes
from curation.core.json_text import decode_json
from curation.core.reading import utf8_text
from curation.manifest.header import Header
from curation.review.decisions.decision import ACTIONS, Stage, is_line
from curation.review.decisions.verdicts import VERDICTS, checked_reason

MOST_REASONS = 9
_LARGEST = 64 << 10
_LONGEST = 400
_HEADING = re.compile(r"(#{1,2})(?:\s+(.*?)\s*#*)?\s*")
_LAYOUT = "# QUESTION, then ## near, ## far, ## remove with their meanings, and ## reasons with 1. to 9."


class Guide(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The question, meanings and reasons of a review.

    Attributes
    ----------
    question : str
        One line.
    near, far, remove, keep, unsure, same, different : str
        Meaning of each decision in this review, one line; ``""`` for the general meaning.
    reasons : tuple of str
        The k-th is chosen by the key k.
    """

    question: str
    near: str = ""
    far: str = ""
    remove: str = ""
    keep: str = ""
    unsure: str = ""
    same: str = ""
    different: str = ""
    reasons: tuple[str, ...] = ()

    def meanings(self) -> dict[str, str]:
        """Return the meaning of each decision that has one."""
        return {word: text for word in VERDICTS if (text := getattr(self, word))}


def read_guide(path: Path, stage: Stage = "manual") -> Guide:
    """Return the guide of a Markdown file, or of the table ``[guide]`` of a benchmark file.

    Parameters
    ----------
    path : Path
        Ends in ``.md`` or ``.toml``.
    stage : {"manual", "candidate", "auto_override", "pair"}
        Its decisions near, far and remove need a meaning.

    Raises
    ------
    ReviewError
        The file is neither of the two; a heading is unknown, missing or repeated; or a text is malformed.
    """
    data = read_bytes(path, kind="guide", most=_LARGEST, error=ReviewError)
    text = utf8_text(data, path.name, ReviewError, "The guide is not UTF-8")
    match path.suffix.lower():
        case ".md":
            content = _markdown(text, path.name)
        case ".toml":
            content = _toml(text, path.name)
        case suffix:
            raise ReviewError("Not a guide", where=str(path), expected="a .md or .toml file", found=repr(suffix[:20]))
    return checked_guide(content, path.name, stage)


def guide_in(header: Header, stage: Stage) -> Guide | None:
    """Return the guide in the benchmark file of a manifest, or None."""
    text = header.rule.parameters.get("file")
    if not isinstance(text, str) or not text.startswith("{"):
        return None
    where = f"{header.name} {header.version}: rule.parameters: file"
    content = decode_json(text.encode(), dict[str, Any], ReviewError, "The benchmark file is not JSON", where=where)
    guide = content.get("guide")
    return None if guide is None else checked_guide(guide, f"{where}: guide", stage)


def checked_guide(content: Mapping[str, Any], where: str, stage: Stage) -> Guide:
    """Return the guide; raise `ReviewError` if a text is malformed, or a decision of the stage has no meaning."""
    try:
        guide = msgspec.convert(content, Guide)
    except msgspec.ValidationError as error:
        raise ReviewError("Malformed guide", where=where, expected=_LAYOUT, found=str(error)[:200]) from None
    texts = {"question": guide.question, **guide.meanings()}
    texts |= {f"reason {key}": reason for key, reason in enumerate(guide.reasons, 1)}
    for name, text in texts.items():
        if not text or not is_line(text, _LONGEST):
            expected = f"1 to {_LONGEST} printable characters"
            raise ReviewError("A guide text is empty, long or unprintable", where=f"{where}: {name}", expected=expected)
    for word in ("near", "far", "remove"):
        if word in ACTIONS[stage] and not getattr(guide, word):
            hint = f"add a heading '## {word}' with one sentence below it"
            raise ReviewError(f"The guide does not say what {word!r} means", where=where, expected=_LAYOUT, hint=hint)
    if len(guide.reasons) > MOST_REASONS or len(set(guide.reasons)) < len(guide.reasons):
        raise ReviewError(
            "Too many reasons, or a repeated one", where=where, expected=f"at most {MOST_REASONS}, all different"
        )
    for reason in guide.reasons:
        checked_reason(reason)
    return guide


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ReviewError("The guide is not TOML", where=name, found=str(error)[:200]) from None
    guide = tables.get("guide")
    if not isinstance(guide, dict):
        expected = 'a table [guide] with question = "…", near, far, remove, and reasons = ["…"]'
        raise ReviewError("The benchmark file has no guide", where=name, expected=expected)
    return guide


def _markdown(text: str, name: str) -> dict[str, Any]:
    """Return the sections of a guide: paragraphs joined to one line, numbered lines as a list."""
    lines, content = text.splitlines(), dict[str, Any]()
    headings = [(number, match) for number, line in enumerate(lines) if (match := _HEADING.fullmatch(line))]
    starts = [*(number for number, _ in headings), len(lines)]
    if any(line.strip() for line in lines[: starts[0]]):
        raise ReviewError("The guide begins without a heading", where=name, expected=_LAYOUT)
    for (start, heading), end in zip(headings, starts[1:], strict=True):
        title = heading[2] or ""
        section = "question" if heading[1] == "#" else title.lower()
        if section in content or section not in ("question", "reasons", *VERDICTS):
            message, where = "A heading of the guide is unknown or repeated", f"{name}, line {start + 1}"
            raise ReviewError(message, where=where, expected=_LAYOUT, found=ascii(lines[start])[:80])
        below = [line.strip() for line in lines[start + 1 : end] if line.strip()]
        content[section] = title if section == "question" else " ".join(below)
        if section == "reasons":
            content[section] = _reasons(below, name)
    return content


def _reasons(lines: list[str], name: str) -> list[str]:
    reasons: list[str] = []
    for line in lines:
        item = re.fullmatch(r"([0-9]+)[.)]\s+(.+)", line)
        if item is None or int(item[1][:9]) != len(reasons) + 1:
            expected = f"{len(reasons) + 1}. TEXT: the number is the key"
            raise ReviewError(
                "Malformed list of reasons", where=f"{name}: reasons", expected=expected, found=ascii(line)[:80]
            )
        reasons.append(item[2])
    return reasons
