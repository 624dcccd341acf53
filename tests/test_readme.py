"""The shell blocks of README.md and docs run as written, on a small world laid out as they expect."""

import json
import random
import re
import shlex
from pathlib import Path

import pytest

from curation.cli import main
from tests.small_world import write_detections, write_small_world

ROOT = Path(__file__).parents[1]
DECLARED = "curation build manifests/"


def commands(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```bash\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    write_small_world(tmp_path / "data", n_closed=30, n_wilderness=70)
    write_shapes(tmp_path)
    return tmp_path


def write_shapes(folder: Path) -> None:
    """Write the user's own data that the pages speak of, and the task file that they print."""
    rng = random.Random(5)
    names = ("star", "circle", "square", "triangle")
    for part, n in (("train", 200), ("test", 40)):
        images = [
            {"id": f"{part}-{k}", "file_name": f"{part}-{k}.png", "width": 99, "height": 99} for k in range(n)
        ]
        annotations = [
            {
                "image_id": image["id"],
                "category_id": rng.randint(1, 4),
                "bbox": [20 * place, 5, 15, 15],
                "iscrowd": 0,
            }
            for image in images
            for place in range(rng.randint(1, 4))
        ]
        content = {
            "images": images,
            "annotations": [
                {"id": number, "area": 225, **row} for number, row in enumerate(annotations, start=1)
            ],
            "categories": [{"id": number, "name": name} for number, name in enumerate(names, start=1)],
        }
        (folder / f"{part}.json").write_text(json.dumps(content))
    (text,) = re.findall(
        r"^```toml\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL
    )
    (folder / "tasks.toml").write_text(text)


def write_perfect_results(truth: Path, results: Path) -> None:
    rows = json.loads(truth.read_text())["annotations"]
    detections = [
        {key: row[key] for key in ("image_id", "category_id", "bbox")} | {"score": 0.9} for row in rows
    ]
    results.write_text(json.dumps(detections))


def run(line: str) -> int:
    program, *arguments = shlex.split(line)
    assert program == "curation"
    return main(arguments)


def test_pages_print_one_task_file() -> None:
    files = [
        re.findall(r"^```toml\n(.*?)^```", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
        for page in ("README.md", "docs/owod.md")
    ]
    assert files[0] == files[1]


@pytest.mark.parametrize("page", ["README.md", "docs/elephant.md", "docs/owod.md"])
def test_every_command_of_a_page_runs(page: str, data: Path) -> None:
    lines = commands(page)
    assert len(lines) >= 5
    for line in lines:
        if line.startswith(DECLARED):
            continue
        if "t2-results.json" in line:
            truth = next(word for word in shlex.split(line) if "t2-t" in word)
            write_perfect_results(data / truth, data / "t2-results.json")
        elif "-results.json" in line:
            for part in ("closed", "wilderness"):
                write_detections(data / "truth" / f"{part}.json", data / f"{part}-results.json")
        assert run(line) == 0, line


def test_completing_the_declared_manifest_refuses_other_data(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The small world is not train2017: the command must run, say which figures differ, and write nothing.
    (line,) = [line for line in commands("README.md") if line.startswith(DECLARED)]
    (data / "manifests").symlink_to(ROOT / "manifests")
    assert run(line) == 1
    assert "23,008" in capsys.readouterr().out
    assert not (data / shlex.split(line)[-1]).exists()


def test_results_of_the_readme_are_there(data: Path) -> None:
    for line in commands("README.md"):
        if "t2-results.json" in line:
            write_perfect_results(data / "t2-truth.json", data / "t2-results.json")
        elif "evaluate" in line:
            for part in ("closed", "wilderness"):
                write_detections(data / "truth" / f"{part}.json", data / f"{part}-results.json")
        if not line.startswith(DECLARED):
            assert run(line) == 0
    result = json.loads((data / "scores" / "results.json").read_text())
    assert result["profile"] == "paper"
    assert result["n_closed"] == 30
    section = json.loads((data / "scores-t2" / "results.json").read_text())["t2/clean"]
    assert (section["UR"], section["mAP_both"]) == (100.0, 100.0)


def test_links_and_pictures_exist() -> None:
    for page in ("README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))):
        text = (ROOT / page).read_text(encoding="utf-8")
        targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
        assert all((ROOT / page).parent.joinpath(target).exists() for target in targets), page
