"""A mistake in a file, and how it is mended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """A mistake in a file of detections, or in the truth that they are compared with.

    Attributes
    ----------
    what : str
        What is wrong, in words.
    evidence : str
        What was counted.
    now, mended : float or None
        The counted share, from 0 to 1, before and after the mend; None if the evidence is not a share, or without a
        mend.
    mend : str
        ``KEY=VALUE`` for ``--mend``; ``""`` if no mend exists.
    command : str
        The command to run, or other advice.
    side : {"detections", "truth"}
        The file that has the mistake.
    """

    what: str
    evidence: str
    now: float | None
    mended: float | None = None
    mend: str = ""
    command: str = ""
    side: Literal["detections", "truth"] = "detections"

    @property
    def shown(self) -> str:
        """The evidence as text: what was counted, now and after the mend."""
        shares = [f"{100 * share:.1f} %" for share in (self.now, self.mended) if share is not None]
        return f"{self.evidence}: {' -> '.join(shares)}" if shares else self.evidence


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Return findings with their evidence and command, as text."""
    lines = []
    for number, finding in enumerate(findings, 1):
        lines += [f"{number}. {finding.what}", f"   {finding.shown}", f"   {finding.command}"]
    return lines


_LAYOUTS = {
    "xywh": "x, y, width, height",
    "xyxy": "x1, y1, x2, y2",
    "cxcywh": "centre x, centre y, width, height",
    "yxhw": "y, x, height, width",
    "yxyx": "y1, x1, y2, x2",
    "cycxhw": "centre y, centre x, height, width",
}


def box_words(form: str, unit: str | None = None) -> str:
    """Return the words for a form of boxes; `unit` replaces the text of its unit.

    >>> box_words("xyxy:0-1")
    "x1, y1, x2, y2 in parts of the image's size (0-1)"
    """
    layout, _, of_form = form.partition(":")
    unit = of_form if unit is None else unit
    square = f"the network's square input ({unit})"
    kinds = {"": "pixels", "0": f"parts of the image's size ({unit})", "x": f"pixels of another scale ({unit})",
             "l": square, "c": square}  # fmt: skip
    return f"{_LAYOUTS[layout]} in {kinds.get(of_form[:1], f'pixels off by {unit}')}"
