"""The audits of the published open-world lists, as docs/audits holds them: ``make audits`` writes them anew.

Lists and annotations are read below the folder that ``CURATION_SHARED`` names (``data/owod/published``, ``data/coco``,
``data/voc2007``); a table of image and class stands in for the boxes of train2017.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path

from curation.cli import main
from tests.docs.pages import ROOT

FOLDER = ROOT / "docs" / "audits"
LISTS = {"reowod-published": "reowod", "m-owodb-published": "ore", "s-owodb-published": "owdetr"}
"""Folder of the authors' files of each manifest."""

_SOURCES = {
    "coco-train2017": "coco/presence_2014_2017.csv",
    "coco-val2017": "coco/instances_val2017_rebuilt.json",
    "voc2007-test": "voc2007/test_with_difficult.json",
}


def write(name: str, data: Path, folder: Path) -> list[Path]:
    """Write ``NAME.html`` and ``NAME.json`` of one manifest of published lists, by the commands of docs/owod.md."""
    with tempfile.TemporaryDirectory() as work, contextlib.redirect_stdout(io.StringIO()) as said:
        lists, page = data / "owod" / "published" / LISTS[name], Path(work) / "page.html"
        manifest = Path(work) / "manifest"
        header = ROOT / "manifests" / "owod" / name / "1.0.0"
        if main(["import", str(header), "--lists", str(lists), "--out", str(manifest)]):
            raise RuntimeError(said.getvalue())
        wanted = ["coco-train2017", *(["voc2007-test"] if name.startswith("m-") else []), "coco-val2017"]
        given = [text for slot in wanted for text in ("--source", f"{slot}={data / _SOURCES[slot]}")]
        said.truncate(0)
        said.seek(0)
        status = main(["audit", str(manifest), *given, "--out", str(page), "--json"])
        if status == 2:
            raise RuntimeError(said.getvalue())
        (folder / f"{name}.html").write_bytes(page.read_bytes())
        (folder / f"{name}.json").write_text(said.getvalue(), encoding="utf-8")
    return [folder / f"{name}.html", folder / f"{name}.json"]


if __name__ == "__main__":
    if "CURATION_SHARED" not in os.environ:
        sys.exit("the authors' lists and annotation files are absent: set CURATION_SHARED to their folder")
    for one in LISTS:
        written = write(one, Path(os.environ["CURATION_SHARED"]) / "data", FOLDER)
        sys.stdout.writelines(f"{path.relative_to(ROOT)}\n" for path in written)
