"""Small Open Images files in the published layouts, for tests."""

from collections.abc import Sequence
from pathlib import Path

HEADER = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
ROWS = (
    "000002b66c9c498e,xclick,/m/01g317,1,0.012500,0.195312,0.148438,0.587500,0,1,0,0,0",
    "000002b66c9c498e,activemil,/m/01g317,1,0.025000,0.276563,0.714063,0.948438,-1,-1,-1,-1,-1",
    "00166893b16a03ab,xclick,/m/0bt9lr,1,0.022673031,0.9642006,0.07103825,0.80054647,1,0,1,1,0",
    "00166893b16a03ab,xclick,/m/01yrx,1,0.000000,1.000000,0.000000,1.000000,0,0,0,0,1",
)
DESCRIPTIONS = "/m/01g317,Person\n/m/0bt9lr,Dog\n/m/01yrx,Cat\n"


def write_boxes(
    root: Path, rows: Sequence[str] = ROWS, *, part: str = "train", header: str = HEADER, end: str = "\n"
) -> Path:
    """Write the box CSV of a part, without class descriptions, and return it."""
    root.mkdir(parents=True, exist_ok=True)
    path = root / f"{part}-annotations-bbox.csv"
    path.write_bytes("".join(f"{line}{end}" for line in (header, *rows)).encode())
    return path


def write_openimages(root: Path, rows: Sequence[str] = ROWS, *, part: str = "train") -> Path:
    """Write the box CSV of a part and the class descriptions, and return the root."""
    write_boxes(root, rows, part=part)
    (root / "class-descriptions-boxable.csv").write_text(DESCRIPTIONS)
    return root
