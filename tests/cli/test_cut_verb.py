"""``curation cut`` on a COCO JSON: result, files, and wrong use."""

import json
from pathlib import Path

import pytest

from curation.cli import main
from tests.shell import Shell

IMAGES = [("a", "b", "c")] * 4 + [("d", "e")] * 5 + [("d", "e", "f")] * 2 + [("g", "h")] * 6 + [("c", "d"), ("f", "g")]


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    names = "hgfedcba"
    annotations = [
        {"id": number, "image_id": image, "category_id": names.index(name) + 1, "bbox": [1, 1, 5, 5], "area": 25}
        for number, (image, name) in enumerate(
            [(image, name) for image, shown in enumerate(IMAGES, 1) for name in (*shown, shown[0])], 1
        )
    ]
    images = [{"id": n, "file_name": f"{n}.jpg", "width": 50, "height": 50} for n in range(1, len(IMAGES) + 1)]
    path = tmp_path / "truth.json"
    categories = [{"id": number, "name": name} for number, name in enumerate(names, 1)]
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


def test_result_and_files(truth: Path, tmp_path: Path, shell: Shell) -> None:
    command = ["cut", str(truth), "-k", "3", "--out", str(tmp_path / "out"), "--json"]
    result = shell.data(*command)
    assert result["clusters"] == [["a", "b", "c"], ["d", "e", "f"], ["g", "h"]]
    assert result["ncut"] == pytest.approx(1 / 25 + 2 / 24 + 1 / 13, abs=1e-12)
    assert result["certificate"] == "exact"
    assert result["class_images"]["d"] == 8
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"matrix.csv", "clusters.csv", "cut.json"}
    assert json.loads((tmp_path / "out/cut.json").read_text()) == result
    assert (tmp_path / "out/clusters.csv").read_text().splitlines()[:2] == ["cluster,class,images", "1,a,4"]
    assert main([*command, "--figures", "--force"]) == 0
    assert {"matrix.png", "matrix.svg"} <= {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-k", "9"), "2 to 8"),
        (("-k", "1"), "2 to 8"),
        (("-k", "2", "--set", "restarts=-1"), "at least 0, at most 100000"),
        (("-k", "2", "--classes", "{empty}"), "empty"),
        (("-k", "2", "--classes", "{strange}"), "no such class"),
        (("-k", "2", "--classes", "{apart}"), "is not connected"),
        (("-k", "2", "--classes", "{none}"), "exist"),
    ],
)
def test_wrong_use(truth: Path, tmp_path: Path, arguments: tuple[str, ...], words: str, shell: Shell) -> None:
    for name, text in (("empty", "\n"), ("strange", "a\nzebra\n"), ("apart", "a\nb\ng\nh\n")):
        (tmp_path / name).write_text(text)
    given = [
        one.format(**{name: tmp_path / name for name in ("empty", "strange", "apart", "none")}) for one in arguments
    ]
    assert words in shell.err("cut", truth, *given)
