"""Execute every notebook from a clean kernel: ``python -m tests.notebooks.execution [--write] [NAME …]``.

A notebook names what it takes in one cell, ``DATA = {"coco": None, …}``, and draws what is not given. With ``--data
coco=PATH`` a run has it: the saved notebook holds ``None`` again, and its metadata say whose outputs it has.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
LARGEST = 600_000
"""Characters of a saved notebook, its pictures included."""
GIVEN = "data_given"
"""Of a notebook's metadata: the data that its saved outputs are of, by their names in the cell."""
PHOTOS_OF = "photos-of-"
"""Tag of a cell that shows photos of the data named after it: its outputs are not saved where these data are given."""


def execute(path: Path, changes: Mapping[str, str] = {}, data: Mapping[str, str] = {}) -> nbformat.NotebookNode:
    """Return the notebook with the outputs of a fresh run in the repository's root.

    Parameters
    ----------
    changes : mapping of str to str
        Texts of its cells, and what stands in their place in the run.
    data : mapping of str to str
        Paths of the data that the notebook is given; the notebook that is returned does not name them.
    """
    notebook = nbformat.read(path, as_version=4)
    sources = [cell.source for cell in notebook.cells]
    for old, new in {**changes, **{f'"{name}": None': f'"{name}": {place!r}' for name, place in data.items()}}.items():
        (cell,) = (cell for cell in notebook.cells if cell.cell_type == "code" and old in cell.source)
        cell.source = cell.source.replace(old, new)
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}})
    client.execute()
    for cell, source in zip(notebook.cells, sources, strict=True):
        cell.source = source
    notebook.metadata[GIVEN] = sorted(data)
    return notebook


def settle(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Take out of a notebook what two runs do not share, and what may not be passed on.

    Two runs do not share times, Python's version, and where streams were cut.
    """
    notebook.metadata.pop("language_info", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = (
                [] if shows_photos_of(cell, notebook.metadata.get(GIVEN, ())) else settled_streams(cell.outputs)
            )
    return notebook


def shows_photos_of(cell: nbformat.NotebookNode, names: Iterable[str]) -> bool:
    """Return whether a cell is tagged as one that shows photos of any of these data."""
    return any(f"{PHOTOS_OF}{name}" in cell.metadata.get("tags", ()) for name in names)


def settled_streams(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Return the outputs of a cell with each run of streams as one stdout, then one stderr.

    A kernel sends both streams in pieces, cut and interleaved as its clock has it.
    """
    settled: list[nbformat.NotebookNode] = []
    pieces: dict[str, str] = {"stdout": "", "stderr": ""}

    def flush() -> None:
        for name, text in pieces.items():
            if text:
                settled.append(nbformat.v4.new_output("stream", name=name, text=text))
                pieces[name] = ""

    for one in outputs:
        if one.output_type == "stream":
            # A warning names the kernel's file of the cell.
            pieces[one.name] += re.sub(r"\S*/ipykernel_\d+/\d+\.py:\d+: ", "", one.text)
        else:
            flush()
            settled.append(one)
    flush()
    return settled


def cells_with_photos_of_others(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the cells with photos, unless no data are given or the cell's tag names data that are not given."""
    if not notebook.metadata.get(GIVEN):
        return []
    photos = (
        cell for cell in notebook.cells if any("image/jpeg" in out.get("data", {}) for out in cell.get("outputs", ()))
    )
    return [cell for cell in photos if not any(tag.startswith(PHOTOS_OF) for tag in cell.metadata.get("tags", ()))]


def save(path: Path, notebook: nbformat.NotebookNode) -> str:
    """Write the notebook back, and return what became of it in a few words."""
    before = set(nbformat.read(path, as_version=4).metadata.get(GIVEN, ()))
    if lacking := before - set(notebook.metadata.get(GIVEN, ())):
        words = " ".join(f"--data {name}=PATH" for name in sorted(lacking))
        return f"ran; not saved, since its outputs are of data that this run lacks ({words})"
    text = nbformat.writes(settle(notebook)) + "\n"
    if cells_with_photos_of_others(notebook):
        raise ValueError(f"{path.name} would contain photos of others: tag their cell {PHOTOS_OF}NAME")
    if len(text) > LARGEST:
        raise ValueError(f"{path.name} would have {len(text):,} characters, more than {LARGEST:,}: show less")
    path.write_text(text, encoding="utf-8")
    return f"ran and saved, {len(text):,} characters"


def main() -> int:
    """Run all notebooks, or those named; ``--write`` keeps the outputs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="notebooks without .ipynb (default: all)")
    parser.add_argument("--write", action="store_true", help="save the outputs into the notebooks")
    parser.add_argument("--data", action="append", default=[], metavar="NAME=PATH", help="data of the named notebooks")
    options = parser.parse_args()
    data = dict(one.split("=", 1) for one in options.data)
    # A terminal's colours and widths must not reach the saved outputs.
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    paths = [FOLDER / f"{name}.ipynb" for name in options.names] or sorted(FOLDER.glob("*.ipynb"))
    failed = 0
    for path in paths:
        try:
            notebook = execute(path, data=data)
            print(f"{path.name}: {save(path, notebook) if options.write else 'ran'}")
        except (CellExecutionError, OSError, ValueError) as error:
            failed += 1
            print(f"{path.name}: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
