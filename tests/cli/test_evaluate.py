import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from curation.manifest.manifest import read_manifest
from tests.evaluation import elephant_rows
from tests.frozen.version_1 import of_json
from tests.shell import Shell
from tests.small_world import write_small_world

CAT, DOG, UNKNOWN = 1, 2, -1
CATEGORIES = [{"id": CAT, "name": "cat"}, {"id": DOG, "name": "dog"}, {"id": UNKNOWN, "name": "unknown"}]
BOX = [10, 10, 40, 40]


def truth(images: range, category: int, difficult: int = 0) -> dict[str, Any]:
    return {
        "images": [{"id": n, "file_name": f"{n:06d}.jpg", "width": 100, "height": 100} for n in images],
        "annotations": [
            {
                "id": n,
                "image_id": n,
                "category_id": category,
                "bbox": BOX,
                "area": 1600,
                "iscrowd": 0,
                "difficult": difficult,
            }
            for n in images
        ],
        "categories": CATEGORIES,
    }


def results(images: Iterable[int], category: int = CAT) -> list[dict[str, Any]]:
    return [
        {"image_id": n, "category_id": category, "bbox": BOX, "score": 1 / (1 + n), "background_score": 0.0}
        for n in images
    ]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Ten closed cats, all found; ten wilderness objects, half of them called a cat. The image numbers collide."""
    content = {
        "truth_closed": truth(range(1, 11), CAT),
        "truth_wilderness": truth(range(1, 11), UNKNOWN),
        "detections_closed": results(range(1, 11)),
        "detections_wilderness": results(range(1, 6)),
    }
    for name, data in content.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
    return {name: tmp_path / f"{name}.json" for name in content}


def arguments(files: dict[str, Path], *more: str) -> list[str]:
    given = ["evaluate", "elephant", *more]
    for part in ("closed", "wilderness"):
        given += ["--truth", f"{part}={files[f'truth_{part}']}"]
        given += ["--detections", f"{part}={files[f'detections_{part}']}"]
    return given


def write(path: Path, content: object) -> None:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def test_json_holds_digests_definitions_and_numbers(files: dict[str, Path], shell: Shell) -> None:
    found = shell.data(*arguments(files, "--json"))
    assert found["protocol"] == "elephant"
    assert found["variant"] == "paper"
    for part in ("closed", "wilderness"):
        assert found["inputs"][part]["detections"]["sha256"].startswith("sha256:")
        assert found["inputs"][part]["truth"]["files"][0]["sha256"].startswith("sha256:")
    assert [row["images"] for row in found["images"]] == [10, 10]
    assert found["definitions"]["WI"]
    found = elephant_rows.of_json(found)
    assert found["paper"]["WI"]["0.3"]["fp_open"]["cat"] == [0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3]
    assert found["paper"]["classes_left_out"] == {"dog": "no ground truth"}
    assert found["background_gap"]["cat"]["n"] == 10


@pytest.mark.usefixtures("unpainted")
def test_a_second_run_leaves_nothing_of_the_first(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "scores"
    assert main(arguments(files, "--out", str(out), "--figures", "--variant", "all")) == 0
    (out / "wilderness_curve.png").rename(out / "kept-by-hand.png")
    stale = json.loads((out / "results.json").read_text())
    stale["written"] += ["an-earlier-figure.png", "../outside.png", "results.json", 7]
    # As an earlier version of this tool might have left them.
    (out / "results.json").write_text(json.dumps(stale))
    for path in (tmp_path / "outside.png", out / "a-photo.png", out / "an-earlier-figure.png"):
        path.write_bytes(b"old")
    assert main(arguments(files, "--out", str(out))) == 2
    assert (out / "an-earlier-figure.png").exists()
    assert main(arguments(files, "--out", str(out), "--force")) == 0
    assert not (out / "an-earlier-figure.png").exists()
    assert (out / "kept-by-hand.png").exists()
    assert (out / "a-photo.png").exists()
    assert (tmp_path / "outside.png").exists()
    names = json.loads((out / "results.json").read_text())["written"]
    kept = {"results.json", "kept-by-hand.png", "a-photo.png"}
    assert {path.name for path in out.iterdir()} == {*names, *kept}
    (out / "results.json").write_text("[")
    assert main(arguments(files, "--out", str(out))) == 2
    assert main(arguments(files, "--out", str(out), "--force")) == 0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("detections_closed", "[", "cannot be read"),
        ("detections_closed", {"images": [], "annotations": []}, "ground-truth file"),
        ("detections_closed", [{**results(range(1, 2))[0], "category_id": 9}], "category"),
        ("detections_closed", [{**results(range(1, 2))[0], "image_id": 77}], "not in the ground truth"),
        ("detections_closed", [{**results(range(1, 2))[0], "bbox": [0, 0, -1, 1]}], "box"),
        ("detections_wilderness", [{**results(range(1, 2))[0], "score": 2}], "score"),
        ("truth_closed", truth(range(1, 11), UNKNOWN), "no object of a known class"),
        ("truth_wilderness", truth(range(1, 11), DOG), "objects of known classes"),
        ("truth_closed", '{"images": [', "truth_closed.json"),
    ],
)
def test_bad_input_is_one_clear_error_and_writes_nothing(
    files: dict[str, Path], tmp_path: Path, shell: Shell, name: str, content: object, message: str
) -> None:
    write(files[name], content)
    error = shell.err(*arguments(files, "--out", str(tmp_path / "out")))
    assert message in error
    assert files[name].name in error
    assert not (tmp_path / "out").exists()


def test_swapped_parts_are_told(files: dict[str, Path], shell: Shell) -> None:
    swapped = {
        "truth_closed": files["truth_wilderness"],
        "truth_wilderness": files["truth_closed"],
        "detections_closed": files["detections_wilderness"],
        "detections_wilderness": files["detections_closed"],
    }
    assert "swapped" in shell.err(*arguments(swapped))


def test_detections_called_unknown_count_for_no_known_class(
    files: dict[str, Path], tmp_path: Path, shell: Shell
) -> None:
    expected = shell.data(*arguments(files, "--bootstrap", "3", "--json"))
    named = {"image_id": 1, "category": "unknown", "bbox": BOX, "score": 0.99, "background_score": 0.5}
    more = [*results(range(1, 4), UNKNOWN), named]
    for part, images in (("closed", 11), ("wilderness", 6)):
        rows = more + results(range(1, images))
        write(files[f"detections_{part}"], "".join(json.dumps(row) + "\n" for row in rows))
    found = shell.data(*arguments(files, "--bootstrap", "3", "--json"))
    for part in ("closed", "wilderness"):
        assert found["inputs"][part]["detections"]["reported"] == {
            "left out: detections called unknown, which no measure of known classes counts": 4
        }
    for one, other in zip(found["scored"], expected["scored"], strict=True):
        assert one.pop("predictions") != other.pop("predictions")
    assert {**found, "inputs": None} == {**expected, "inputs": None}
    assert "detections called unknown" in shell.out(*arguments(files))


@pytest.mark.parametrize("protocol", ["voc", "coco"])
def test_plain_precision_knows_unknown_only_where_it_is_listed(
    files: dict[str, Path], tmp_path: Path, shell: Shell, protocol: str
) -> None:
    truth_of_both = truth(range(1, 11), CAT)
    more = truth(range(11, 16), UNKNOWN)
    for one in more["annotations"]:
        one["id"] += 100
    for key in ("images", "annotations"):
        truth_of_both[key] += more[key]
    write(files["truth_closed"], truth_of_both)
    write(files["detections_closed"], results(range(1, 11)) + results(range(11, 16), UNKNOWN))
    given = ["evaluate", protocol, "--json", "--truth", str(files["truth_closed"])]
    given += ["--detections", str(files["detections_closed"])]
    per_class = "AP11" if protocol == "voc" else "per_class"
    found = of_json(shell.data(*given))
    assert list(found["inputs"]["test"]["detections"]["reported"].values()) == [5]
    assert found[per_class]["cat"] == pytest.approx(1.0)
    assert set(found[per_class]) == {"cat", "dog"}
    write(tmp_path / "classes.json", {"known": ["cat", "unknown"]})
    found = of_json(shell.data(*given, "--classes", tmp_path / "classes.json"))
    assert found["inputs"]["test"]["detections"]["reported"] == {}
    assert found[per_class] == {"cat": pytest.approx(1.0), "unknown": pytest.approx(1.0)}


def test_a_results_folder_with_a_file_of_unknown_is_read(tmp_path: Path, shell: Shell) -> None:
    write(tmp_path / "truth.json", truth(range(1, 3), CAT))
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "comp4_det_test_cat.txt").write_text("000001 0.9 11 11 50 50\n")
    (tmp_path / "results" / "comp4_det_test_unknown.txt").write_text("000002 0.9 11 11 50 50\n" * 3)
    given = ["evaluate", "voc", "--json", "--on-error", "stray=error"]
    given += ["--truth", str(tmp_path / "truth.json"), "--detections", str(tmp_path / "results")]
    reported = shell.data(*given)["inputs"]["test"]["detections"]["reported"]
    assert reported == {"left out: detections called unknown, which no measure of known classes counts": 3}


def test_ids_are_those_of_a_truth_file_that_has_some(tmp_path: Path, shell: Shell) -> None:
    """A detector trained on a conversion with other ids than the manifest's is read by that conversion's ids."""
    from curation.benchmarks.parts import KNOWN_OF_VOC as KNOWN

    world = write_small_world(tmp_path, n_closed=20, n_wilderness=40)
    sources = world.arguments()
    manifest = str(tmp_path / "manifest")
    assert main(["build", "elephant", *sources, "--out", manifest]) == 0
    exported = ["export", manifest, "--format", "coco", "--part", "closed", *sources]
    assert main([*exported, "--out", str(tmp_path / "closed.json")]) == 0
    content = json.loads((tmp_path / "closed.json").read_text())
    # The manifest is of two datasets: its export has the ids of the paper's files.
    assert {one["name"]: one["id"] for one in content["categories"]} == {
        **{name: number for number, (name, _) in enumerate(sorted(KNOWN), start=1)},
        "unknown": -1,
    }

    def shifted(number: int) -> int:
        return number if number < 0 else 120 - number

    for one in content["categories"]:
        one["id"] = shifted(one["id"])
    for one in content["annotations"]:
        one["category_id"] = shifted(one["category_id"])
    write(tmp_path / "other.json", content)
    rows = [
        {"image_id": one["image_id"], "category_id": one["category_id"], "bbox": one["bbox"], "score": 0.9}
        for one in content["annotations"]
    ]
    write(tmp_path / "rows.json", rows)
    write(tmp_path / "none.json", [])
    given = ["evaluate", "elephant", "--json", "--manifest", manifest]
    given += ["--truth", f"closed={tmp_path / 'other.json'}", "--truth", f"wilderness={world.coco_json}"]
    given += ["--detections", f"closed={tmp_path / 'rows.json'}"]
    given += ["--detections", f"wilderness={tmp_path / 'none.json'}"]
    found = shell.data(*given)
    assert {row["AP_area"] for row in found["average_precision"] if row["ratio"] == "0.0"} == {None, 100.0}
    assert found["category_ids"] == "truth"
    message = shell.err(*given, "--category-ids", "manifest")
    assert "not known" in message
    assert "--category-ids truth" in message


def test_stray_detections_may_be_dropped_and_are_reported(files: dict[str, Path], shell: Shell) -> None:
    write(files["detections_closed"], results(range(1, 14)))
    assert "3 such detections" in shell.err(*arguments(files))
    found = shell.data(*arguments(files, "--on-error", "stray=drop", "--json"))
    assert list(found["inputs"]["closed"]["detections"]["reported"].values()) == [3]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--set", "recalls=0.25"], "--set recalls="),
        (["--set", "recalls=0.3,0.3"], "--set recalls="),
        (["--set", "fbeta_ratios=9.0"], "wilderness images"),
        (["--set", "betas=zero"], "beta"),
        (["--bootstrap", "-1"], "bootstrap"),
        (["--part", "wilderness=wr1"], "--manifest"),
        (["--manifest", "no/such/manifest"], "manifest"),
        (["--classes", "absent.json"], "absent.json"),
        (["--truth", "open=x.json"], "--truth"),
        (["--truth", "closed=x.json"], "twice"),
    ],
)
def test_options_that_cannot_work(files: dict[str, Path], shell: Shell, more: list[str], message: str) -> None:
    assert message in shell.err(*arguments(files, *more))


def test_voc_reads_a_results_folder(tmp_path: Path, shell: Shell) -> None:
    write(tmp_path / "truth.json", truth(range(1, 3), CAT))
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "comp4_det_test_cat.txt").write_text("000001 0.9 11 11 50 50\n000002 0.8 80 80 90 90\n000099 1 1 1 2 2\n")
    given = ["evaluate", "voc", "--truth", str(tmp_path / "truth.json"), "--detections", str(folder)]
    found = of_json(shell.data(*given, "--json", "--out", tmp_path / "out"))
    assert found["mAP11"] == pytest.approx(6 / 11)
    assert found["mAP_area"] == 0.5
    assert list(found["inputs"]["test"]["detections"]["reported"].values()) == [1]
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".csv", ".json"}
    assert "54.55" in shell.out(*given)
    assert main([*given, "--on-error", "stray=error"]) == 2


def test_a_manifest_chooses_images_and_classes_from_raw_files(tmp_path: Path, shell: Shell) -> None:
    world = write_small_world(tmp_path, n_closed=20, n_wilderness=40)
    sources = world.arguments()
    assert main(["build", "elephant", *sources, "--out", str(tmp_path / "manifest")]) == 0
    images = {"closed": [int(stem) for stem in world.closed], "wilderness": world.wilderness}
    given = ["evaluate", "elephant", "--json", "--on-error", "stray=drop"]
    given += ["--truth", f"closed={world.voc_root}", "--truth", f"wilderness={world.coco_json}"]
    for part, numbers in images.items():
        write(tmp_path / f"{part}.json", results(numbers, category=15))
        given += ["--detections", f"{part}={tmp_path / f'{part}.json'}"]
    assert "objects of known classes" in shell.err(*given)

    found = shell.data(*given, "--manifest", tmp_path / "manifest")
    assert found["manifest"]["digest"] == read_manifest(tmp_path / "manifest").digest
    closed, wilderness = found["images"]
    assert (closed["images"], wilderness["images"], len(found["classes"])) == (20, 40, 20)
    assert found["inputs"]["wilderness"]["truth"]["images_in_files"] == 60
    # Every fifth wilderness image has no annotation: they are images all the same.
    assert wilderness["without_annotation"] == 8

    found = shell.data(*given, "--manifest", tmp_path / "manifest", "--part", "wilderness=wr1")
    assert (found["images"][1]["images"], found["levels"][-1]["ratio"]) == (20, "1.0")
    assert list(found["inputs"]["wilderness"]["detections"]["reported"].values()) == [20]
