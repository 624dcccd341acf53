"""Every notebook runs from a clean kernel, and what is committed names no path of a machine."""

import json
import re
from pathlib import Path

import nbformat
import pytest

import curation
from tests.notebooks.execution import (
    FOLDER,
    GIVEN,
    LARGEST,
    PHOTOS_OF,
    cells_with_photos_of_others,
    execute,
    save,
    settle,
    shows_photos_of,
)

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SMALLER = {
    "elephant": {'run_demo(work / "demo")': 'run_demo(work / "demo", sizes=(24, 20, 40))'},
    "fifteen_lines": {'run_demo(Path("demo"))': 'run_demo(Path("demo"), sizes=(24, 20, 40))'},
    "imagenet": {"EPOCHS = len(protocol.known), 30": "EPOCHS = len(protocol.known), 2", "sample(300,": "sample(60,"},
    "osod3": {
        "group_classes(annotations, k=3)": "group_classes(annotations, k=3, restarts=2)",
        "in_four = group_classes(annotations, k=4)": (
            'Path("few.txt").write_text("\\n".join(one for names in in_three.facts["clusters"] for one in names[:9]))\n'
            'in_four = group_classes(annotations, k=4, restarts=2, components="cut", classes=Path("few.txt"))'
        ),
        "range(1, 1501)": "range(1, 301)",
        "(1, 1.5, 2, 3, 4, 6, 10)": "(1, 3)",
        "(1.0, 0.9, 0.7, 0.5, 0.3)": "(0.9, 0.5)",
    },
}
"""What is written smaller where a test runs a notebook: that its cells run does not depend on sizes."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The other tests have the other processors: threads that wait for theirs spend time of both.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.delenv("CURATION_SHARED", raising=False)
    notebook = execute(path, SMALLER.get(path.stem, {}))
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
    if path.stem == "own_dataset":
        takes_every_step_by_the_public_interface_and_succeeds(notebook)


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["atlas", "owod", "wr1"])
def test_what_published_lists_show_is_shown_again(name: str, shared: Path) -> None:
    path = FOLDER / f"{name}.ipynb"
    saved = nbformat.read(path, as_version=4)
    again = settle(execute(path, data={"lists": str(shared / "data")}))
    assert saved.metadata[GIVEN] == again.metadata[GIVEN] == ["lists"]
    printed, printed_again = (
        [out.text for cell in nb.cells for out in cell.get("outputs", ()) if "text" in out] for nb in (saved, again)
    )
    assert printed == printed_again


def takes_every_step_by_the_public_interface_and_succeeds(notebook: nbformat.NotebookNode) -> None:
    cells = [cell for cell in settle(notebook).cells if cell.cell_type == "code"]
    called = set(re.findall(r"\bcuration\.(\w+)(?:\.\w+)?\(", "\n".join(cell.source for cell in cells)))
    steps = {"build", "verify", "audit", "export", "evaluate", "leaderboard", "publish"}
    assert steps <= called <= set(curation.__all__)
    printed = "".join(out.text for cell in cells for out in cell.outputs if out.output_type == "stream")
    assert re.search(r"<Verification of mylab/lake 1\.0\.0, \d+ findings, ok>", printed)
    assert re.search(r"Report\('mylab/lake 1\.0\.0': (?!.*fail)", printed)
    assert "<Exported coco of mylab/lake 1.0.0: 80 images" in printed
    assert "<Published mylab/lake@1.0.0" in printed


def code_of(path: Path) -> list[str]:
    """Return the source of each code cell."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_saved_outputs_are_small_and_of_no_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) <= LARGEST
    outputs = [out for cell in json.loads(text)["cells"] for out in cell.get("outputs", [])]
    words = " ".join(str(out.get("text", "")) for out in outputs)
    assert not any(place in words for place in ("/home/", "/Users/", "/tm" + "p/", "C:\\"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_photo_of_others_is_saved(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert not cells_with_photos_of_others(notebook)
    assert not [
        cell for cell in notebook.cells if shows_photos_of(cell, notebook.metadata.get(GIVEN, ())) and cell.outputs
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_data_are_named_in_one_cell_with_their_page_and_nothing_is_read_from_elsewhere(path: Path) -> None:
    sources = code_of(path)
    cells = [source for source in sources if re.search(r"^DATA = ", source, flags=re.MULTILINE)]
    assert len(cells) == any(re.search(r"\bDATA[.[]", source) for source in sources)
    for name, comment in re.findall(r'^    "(\w+)": None,(.*)$', "\n".join(cells), flags=re.MULTILINE):
        assert re.search(r"# .*https?://", comment), name
    assert not re.search(r"CURATION_SHARED|shared|_rebuilt|test_with_difficult", "\n".join(sources))


def of_pieces(*pieces: tuple[str, str]) -> nbformat.NotebookNode:
    """Return a notebook of one cell whose kernel sent these pieces; a stream "" is a picture."""
    new = nbformat.v4
    outputs = [
        new.new_output("stream", name=name, text=text) if name else new.new_output("display_data", {"text/plain": text})
        for name, text in pieces
    ]
    cell = new.new_code_cell("1", id="a", outputs=outputs, metadata={"execution": {"iopub.execute_input": "now"}})
    return new.new_notebook(cells=[cell], metadata={"language_info": {"name": "python", "version": "3.11.7"}})


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "one.ipynb"
    path.write_text(nbformat.writes(of_pieces(("stdout", "before"))), encoding="utf-8")
    return path


@pytest.mark.parametrize("given", [True, False])
def test_outputs_of_real_data_are_not_overwritten_with_drawn_ones(saved: Path, given: bool) -> None:
    real = of_pieces(("stdout", "real"))
    real.metadata[GIVEN] = ["coco"]
    assert save(saved, real).startswith("ran and saved")
    drawn = of_pieces(("stdout", "drawn"))
    drawn.metadata[GIVEN] = ["coco"] if given else []
    assert ("--data coco=PATH" in save(saved, drawn)) is not given
    assert ("drawn" in saved.read_text()) is given


def test_paths_of_data_are_given_to_a_run_and_not_saved(saved: Path, tmp_path: Path) -> None:
    source = 'DATA = {\n    "coco": None,  # https://cocodataset.org\n}\nprint(len(DATA["coco"]))'
    notebook = of_pieces()
    notebook.cells[0].source = source
    saved.write_text(nbformat.writes(notebook), encoding="utf-8")
    run = execute(saved, data={"coco": "abc"})
    assert run.cells[0].outputs[0].text == "3\n"
    assert (run.cells[0].source, run.metadata[GIVEN]) == (source, ["coco"])


def test_photos_of_others_stop_the_saving_until_their_cell_is_tagged(saved: Path) -> None:
    before = saved.read_text()
    photo = of_pieces(("stdout", "words"), ("", "picture"))
    photo.metadata[GIVEN] = ["coco"]
    photo.cells[0].outputs[1].data = {"image/jpeg": "AAAA"}
    with pytest.raises(ValueError, match="would contain photos of others"):
        save(saved, photo)
    assert saved.read_text() == before
    photo.cells[0].metadata.tags = [f"{PHOTOS_OF}coco"]
    save(saved, photo)
    assert nbformat.read(saved, as_version=4).cells[0].outputs == []


def test_drawn_photos_are_saved_where_the_data_of_their_tag_are_not_given(saved: Path) -> None:
    drawn = of_pieces(("", "picture"))
    drawn.metadata[GIVEN] = ["detic"]
    drawn.cells[0].outputs[0].data = {"image/jpeg": "AAAA"}
    drawn.cells[0].metadata.tags = [f"{PHOTOS_OF}coco"]
    save(saved, drawn)
    assert nbformat.read(saved, as_version=4).cells[0].outputs[0].data == {"image/jpeg": "AAAA"}
