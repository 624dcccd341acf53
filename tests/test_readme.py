"""What README.md promises of its commands, beyond that they run (tests/test_docs_blocks.py)."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from curation.benchmarks.rules.benchmark_file import read_benchmark_file
from curation.cli import main
from curation.manifest.manifest import read_manifest
from tests.docs.pages import blocks_of, commands_of
from tests.docs.worlds import data_of, draw_detections, lay
from tests.evaluation.open_world_rows import of_result
from tests.shell import Shell

DECLARED = "curation build elephant/train2017"


def commands() -> list[str]:
    return [one.text for block in blocks_of("README.md") if block.language == "bash" for one in commands_of(block)]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    lay("README.md", tmp_path)
    return tmp_path


def test_init_writes_the_benchmark_file_that_the_page_prints(data: Path) -> None:
    (line,) = [line for line in commands() if line.startswith("curation init ")]
    assert not (data / "tasks.toml").exists()
    assert main(shlex.split(line)[1:]) == 0
    (data / "printed.toml").write_text(data_of("README.md", "toml")[0])
    written, printed = (read_benchmark_file(str(data / f"{name}.toml")) for name in ("tasks", "printed"))
    assert written == printed


def test_completing_the_declared_manifest_refuses_other_data(data: Path, shell: Shell) -> None:
    # The small world is not train2017: the command must run, say which figures differ, and write nothing.
    (line,) = [line for line in commands() if line.startswith(DECLARED)]
    assert "23,008" in shell.out(*shlex.split(line)[1:], status=1)
    assert not (data / shlex.split(line)[-1]).exists()


def test_results_of_the_readme_are_there(data: Path) -> None:
    for line in commands():
        draw_detections(line, data)
        if not line.startswith(DECLARED):
            assert main(shlex.split(line)[1:]) == 0
    result = json.loads((data / "scores" / "results.json").read_text())
    assert result["variant"] == "paper"
    assert result["images"][0]["images"] == 30
    section = of_result(json.loads((data / "scores-t2" / "results.json").read_text()))["t2/clean"]
    assert (section["UR"], section["mAP_both"]) == (100.0, 100.0)


def photos_of(annotations: Path, folder: Path) -> None:
    """Draw the photos that a COCO file names."""
    image = pytest.importorskip("PIL.Image")
    folder.mkdir()
    for row in json.loads(annotations.read_text())["images"]:
        image.new("RGB", (row["width"], row["height"]), "white").save(folder / row["file_name"])


def lines_beginning(*beginnings: str) -> list[str]:
    block = next(one for one in blocks_of("README.md") if one.text.startswith("curation review propose"))
    found = [one.text for one in commands_of(block)]
    assert [line.startswith(one) for line, one in zip(found, beginnings, strict=True)] == [True] * len(found)
    return found


@pytest.mark.mongo
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_review_goes_on_with_the_shapes(data: Path, fiftyone: Any) -> None:
    """From the files of the example above to a manifest, with two verdicts of a person in between."""
    from curation.review.app.session import resume_review

    propose, start, export, build = lines_beginning(
        "curation review propose", "curation review start", "curation review export", "curation build"
    )
    (data / "near.toml").write_text(data_of("README.md", "toml")[1])
    photos_of(data / "test.json", data / "photos")
    assert main(shlex.split(propose)[1:]) == 0
    assert main([*shlex.split(start)[1:], "--name", f"readme-{data.name}", "--no-app"]) == 0
    review = resume_review(data / "my-review", reviewer="anna").review
    shown = zip(*review.dataset.values(["id", "image_id", "classes"]), strict=True)
    outside = {image: (sample, classes) for sample, image, classes in shown if not {"circle", "square"} & set(classes)}
    stars = sorted(image for image, (_, classes) in outside.items() if classes == ["star"])
    near = sorted(image for image, (_, classes) in outside.items() if "triangle" in classes)
    assert len(stars) > 2
    review.decide([outside[stars[0]][0]], "near", reason="looks like a square", reviewer="anna")
    review.decide([outside[stars[1]][0]], "remove", reason="a circle without a label", reviewer="anna")
    assert main(shlex.split(export)[1:]) == 0
    assert main(shlex.split(build)[1:]) == 0
    made = read_manifest(data / "shapes-ood")
    assert set(made.ids("shapes-near")) == {*near, stars[0]}
    assert set(made.ids("shapes-far")) == set(outside) - {*near, *stars[:2]}
    fiftyone.delete_dataset(f"readme-{data.name}")
