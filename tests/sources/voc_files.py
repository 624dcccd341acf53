"""VOC folders for tests."""

from collections.abc import Sequence
from pathlib import Path


def write_voc(root: Path, stems: Sequence[str], *, part: str = "test", name: str = "dog") -> Path:
    """Write a VOC folder with one object an image and return it."""
    (root / "Annotations").mkdir(parents=True, exist_ok=True)
    (root / "ImageSets" / "Main").mkdir(parents=True, exist_ok=True)
    for stem in stems:
        (root / "Annotations" / f"{stem}.xml").write_text(
            f"<annotation><filename>{stem}.jpg</filename><size><width>90</width><height>60</height></size>"
            f"<object><name>{name}</name><difficult>0</difficult><bndbox><xmin>1</xmin><ymin>2</ymin>"
            "<xmax>30</xmax><ymax>40</ymax></bndbox></object></annotation>"
        )
    (root / "ImageSets" / "Main" / f"{part}.txt").write_text("".join(f"{stem}\n" for stem in stems))
    return root
