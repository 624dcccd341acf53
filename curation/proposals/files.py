"""Proposals as JSON lines: a header, then one proposal a line, by rank."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from curation.errors import ImageIdError, ProposalError
from curation.ids import parse_image_id
from curation.proposals.proposal import FORMAT, FORMAT_VERSION, Proposal, ProposalSet
from curation.storage import read_bytes, write_bytes

_LONGEST_LINE = 1 << 26
_HINT = "curation propose … --out FILE"


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0
    count: int = -1


def write_proposals(path: Path, made: ProposalSet) -> None:
    """Write proposals as JSON lines (UTF-8, line feeds): the same proposals are the same bytes on every machine."""
    write_bytes(path, b"\n".join([*made.lines(), b""]))


def read_proposals(path: Path) -> ProposalSet:
    """Return the proposals of a file that `write_proposals` wrote.

    Raises
    ------
    MissingFileError
        There is no such file.
    ProposalError
        The file is no such file, is cut short, names an image twice, or its ranks are not 1, 2, 3, …; the message names
        the line.
    """
    data = read_bytes(path, kind="proposals file")
    if not data.endswith(b"\n"):
        raise ProposalError(
            "The proposals file ends within a line" if data else "The proposals file is empty",
            where=str(path),
            hint=_HINT,
        )
    head, *rows = data[:-1].split(b"\n")
    count = _check_head(head, path)
    if len(rows) != count:
        raise ProposalError(
            "The proposals file is cut short"
            if len(rows) < count
            else "The proposals file has lines too many",
            where=str(path),
            expected=f"{count} proposals, as its first line says",
            found=str(len(rows)),
            hint=_HINT,
        )
    proposals = tuple(_proposal(row, f"{path}: line {place}") for place, row in enumerate(rows, 2))
    _check_ids(proposals, path)
    return _with_header(head, proposals, path)


def _check_head(line: bytes, path: Path) -> int:
    try:
        head = msgspec.json.decode(line, type=_Head) if len(line) < _LONGEST_LINE else _Head()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        head = _Head()
    if head.format != FORMAT or head.version != FORMAT_VERSION:
        raise ProposalError(
            "The file does not hold proposals that this version reads",
            where=f"{path}: line 1",
            expected=f'a header with "format": "{FORMAT}" and "version": {FORMAT_VERSION}',
            found=repr(line[:60]),
            hint=_HINT,
        )
    return head.count


def _proposal(line: bytes, where: str) -> Proposal:
    try:
        one = msgspec.json.decode(line, type=Proposal)
        parse_image_id(one.image_id)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ImageIdError) as error:
        what = error.what if isinstance(error, ImageIdError) else str(error)
        raise ProposalError("A line is no proposal", where=where, found=what[:200], hint=_HINT) from None
    if not one.evidence:
        raise ProposalError("A proposal carries no evidence", where=where, found=one.image_id, hint=_HINT)
    return one


def _check_ids(proposals: tuple[Proposal, ...], path: Path) -> None:
    repeated = [image for image, n in Counter(one.image_id for one in proposals).items() if n > 1]
    if repeated:
        raise ProposalError(
            f"{len(repeated)} images have two proposals",
            where=str(path),
            expected="one an image",
            found=", ".join(repeated[:3]),
        )
    wrong = next((place for place, one in enumerate(proposals, 1) if one.rank != place), None)
    if wrong is not None:
        raise ProposalError(
            "The proposals are not in the order of their ranks",
            where=f"{path}: line {wrong + 1}",
            expected=f"rank {wrong}",
            found=str(proposals[wrong - 1].rank),
        )


def _with_header(line: bytes, proposals: tuple[Proposal, ...], path: Path) -> ProposalSet:
    data = msgspec.json.decode(line)
    for name in ("format", "version", "count"):
        del data[name]
    try:
        return msgspec.convert({**data, "proposals": proposals}, ProposalSet)
    except msgspec.ValidationError as error:
        raise ProposalError(
            "The header of the proposals file is malformed", where=f"{path}: line 1", found=str(error)[:200]
        ) from None
