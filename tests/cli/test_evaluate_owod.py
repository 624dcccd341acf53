import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from curation.manifest.header import ClassEntry, TaskEntry
from tests.evaluation.open_world_rows import of_result
from tests.evaluation.owod_cases import EXAMPLE
from tests.shell import Shell
from tests.toy_manifests import listed_part, write_toy
from tests.worlds.coco_file import coco_content

NAMES = ("person", "dog", "truck", "bench", "kite", "apple", "bed", "cup")
NUMBERS = {name: 10 + place for place, name in enumerate(NAMES)}
TASK = {"name": "t1", "prev": [], "cur": ["person", "dog"], "rest": list(NAMES[2:])}
NEXT = {"name": "t2", "prev": ["person", "dog"], "cur": ["truck"], "rest": list(NAMES[3:])}


def numbers(text: str) -> list[float]:
    return [float(number) for number in text.split(",")]


def truth(*, unknown: bool = False) -> dict[str, Any]:
    """The worked example with original classes, or as the test view of task 1."""
    names = (*NAMES[:2], "unknown") if unknown else NAMES
    rows = []
    for image, (objects, _) in EXAMPLE.items():
        for name, box in objects:
            kind = name.split()[0]
            crowd = {"area": 1, "iscrowd": int(name.endswith("crowd"))}
            rows.append((image, kind if kind in names else "unknown", numbers(box), crowd))
    return coco_content(EXAMPLE.keys(), rows, {name: NUMBERS.get(name, 99) for name in names})


def results(*, by_name: bool = False, unknown: int = -1) -> list[dict[str, Any]]:
    rows = []
    for image, (_, found) in EXAMPLE.items():
        for name, score, box in found:
            kind = {"category": name} if by_name else {"category_id": NUMBERS.get(name, unknown)}
            rows.append({"image_id": image, "bbox": numbers(box), "score": float(score), **kind})
    return rows


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    content = {"truth": truth(), "detections": results(), "classes": {"tasks": [TASK]}}
    return {name: write(tmp_path / f"{name}.json", data) for name, data in content.items()}


def arguments(files: dict[str, Path], *more: str) -> list[str]:
    given = [text for name, path in files.items() for text in (f"--{name}", str(path))]
    return ["evaluate", "owod", *given, *more]


def evaluate(files: dict[str, Path], shell: Shell, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = shell.data(*arguments(files, "--json", *more))
    return found | of_result(found)


def test_the_worked_example_by_ids_by_names_and_as_an_exported_view(
    files: dict[str, Path], tmp_path: Path, shell: Shell
) -> None:
    found = evaluate(files, shell)
    assert found["t1/clean"]["UDP"] == pytest.approx(60)
    assert found["inputs"]["t1"]["detections"]["sha256"].startswith("sha256:")
    assert found["option_files"]["classes"]["name"] == "classes.json"
    assert found["definitions"]["FN_u_star"]
    assert set(found["t1/clean"]["unknown_per_class"]) == {"truck", "kite", "cup", "apple"}

    write(files["detections"], results(by_name=True))
    assert evaluate(files, shell)["t1/clean"] == found["t1/clean"]

    write(files["truth"], truth(unknown=True))
    write(files["detections"], results(unknown=99))
    same = evaluate(files, shell)["t1/clean"]
    assert same["unknown_per_class"] is None
    assert {k: v for k, v in same.items() if k != "unknown_per_class"} == {
        k: v for k, v in found["t1/clean"].items() if k != "unknown_per_class"
    }
    del files["classes"]
    view = evaluate(files, shell, "--variant", "ore")
    assert view["test/ore"]["mAP_cur"] == pytest.approx(50)
    assert view["test/ore"]["undefined"]["mAP_prev"]
    assert "names a task, not a file" in shell.err(*arguments(files, "--task", "tasks.toml"))


def test_voc_results_folders_are_read_with_their_unknown_class(
    files: dict[str, Path], tmp_path: Path, shell: Shell
) -> None:
    expected = evaluate(files, shell, "--variant", "all")
    folder = tmp_path / "comp4"
    folder.mkdir()
    for name in ("person", "dog", "unknown"):
        lines = [
            f"{image:012d} {score} {x + 1} {y + 1} {x + w} {y + h}"
            for image, (_, found) in EXAMPLE.items()
            for kind, score, box in found
            if kind == name
            for x, y, w, h in [numbers(box)]
        ]
        write(folder / f"comp4_det_test_{name}.txt", "\n".join(lines) + "\n")
    found = evaluate({**files, "detections": folder}, shell, "--variant", "all")
    for name in ("t1/clean", "t1/ore", "t1/owdetr"):
        assert found[name] == expected[name]
    write(folder / "comp4_det_test_truck.txt", "000000000001 0.5 1 1 9 9\n")
    message = shell.err(*arguments({**files, "detections": folder}))
    assert "no known class" in message
    found = evaluate({**files, "detections": folder}, shell, "--on-error", "stray=drop")
    assert list(found["inputs"]["t1"]["detections"]["reported"].values()) == [1]


def test_repeated_lines_are_refused_kept_or_dropped(files: dict[str, Path], tmp_path: Path, shell: Shell) -> None:
    ids = [f"{image:012d}" for image in EXAMPLE]
    lists = {"lists": write(tmp_path / "ids.txt", "\n".join(ids * 2) + "\n")}
    message = shell.err(*arguments(files | lists))
    assert "11 further lines" in message
    assert "--on-error repeats=keep" in message
    once = evaluate(files, shell)["t1/clean"]
    dropped = evaluate(files | lists, shell, "--on-error", "repeats=drop")
    assert dropped["t1/clean"]["UDP"] == once["UDP"]
    assert dropped["inputs"]["t1"]["truth"]["repeated_lines"] == 11
    kept = evaluate(files | lists, shell, "--on-error", "repeats=keep")
    assert kept["repeats"]["keep"]
    for name in ("UR", "UDR", "UDP", "mAP_cur"):
        assert kept["t1/clean"][name] < once[name]
    assert kept["t1/clean"]["AOSE"] == 8
    assert "once an image" in kept["inputs"]["t1"]["detections"]["repeated_images"]

    # A detector that ran over the list line by line wrote everything twice: the same numbers either way.
    write(files["detections"], results() * 2)
    for repeats, expected in (("keep", kept), ("drop", dropped)):
        again = evaluate(files | lists, shell, "--on-error", f"repeats={repeats}")
        assert "once a line" in again["inputs"]["t1"]["detections"]["repeated_images"]
        assert again["t1/clean"] == expected["t1/clean"]


def test_an_image_list_chooses_images_and_strays_are_told(files: dict[str, Path], tmp_path: Path, shell: Shell) -> None:
    lists = {"lists": write(tmp_path / "ids.txt", "1\ncoco:000000000009\n\n")}
    assert "not in the ground truth" in shell.err(*arguments(files | lists))
    found = evaluate(files | lists, shell, "--on-error", "stray=drop")
    counts = found["t1/clean"]["counts"]
    # Image 9 is in the list without any annotation: its detections are false positives.
    assert (counts["images"], counts["images_without_annotation"], counts["FP_u"]) == (2, 1, 1)
    assert sum(found["inputs"]["t1"]["detections"]["reported"].values()) == 14
    write(lists["lists"], "000000000077\n")
    assert "lacks images" in shell.err(*arguments(files | lists))
    write(lists["lists"], "\n")
    assert "names no image" in shell.err(*arguments(files | lists))


@pytest.mark.usefixtures("unpainted")
def test_several_tasks_each_with_its_detections(files: dict[str, Path], tmp_path: Path, shell: Shell) -> None:
    write(files["classes"], {"tasks": [TASK, NEXT]})
    assert "--detections t1=FILE" in shell.err(*arguments(files))
    assert "No such task" in shell.err(*arguments(files, "--task", "t3"))
    one = evaluate(files, shell, "--task", "t2")
    # Trucks are known now: those detections called dog on a truck are no open-set errors.
    assert one["t2/clean"]["num_unknown_gt"] == 4
    assert one["t2/clean"]["mAP_prev"] is not None
    named = {name: path for name, path in files.items() if name != "detections"}
    per_task = [f"--detections=t{k}={files['detections']}" for k in (1, 2)]
    out = tmp_path / "out"
    both = evaluate(named, shell, *per_task, "--out", str(out))
    assert list(both["tasks"]) == ["t1", "t2"]
    assert both["t2/clean"] == one["t2/clean"]
    assert "missing for task t2" in shell.err(*arguments(named, per_task[0], "--task", "t2"))
    assert "twice" in shell.err(*arguments(named, per_task[0], per_task[0]))
    with (out / "measures.csv").open(encoding="utf-8") as stream:
        rows = {(row["task"], row["measure"]): row["value"] for row in csv.DictReader(stream)}
    assert float(rows["t1", "UR"]) == both["t1/clean"]["UR"]
    assert rows["t1", "mAP_prev"] == ""


def test_the_terminal_shows_every_rate_of_unknown_objects(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(files)) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^ *(UR|UDR|UDP) ", shown, re.MULTILINE) == ["UR", "UDR", "UDP"]


def test_no_detections_and_no_unknown_objects(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], shell: Shell
) -> None:
    write(files["detections"], [])
    found = evaluate(files, shell, "--variant", "all", "--out", str(tmp_path / "out"))
    assert {found[f"t1/{name}"]["UR"] for name in ("clean", "ore", "owdetr")} == {0}
    write(files["classes"], {"tasks": [{"name": "last", "prev": list(NAMES[:4]), "cur": list(NAMES[4:])}]})
    assert main(arguments(files, "--json", "--out", str(tmp_path / "last"))) == 0
    shown = capsys.readouterr()
    assert of_result(json.loads(shown.out))["last/clean"]["UR"] is None
    assert "no figures" in shown.err


def test_detections_without_the_class_unknown_are_scored_and_warned_of(files: dict[str, Path], shell: Shell) -> None:
    write(files["detections"], [row for row in results() if row["category_id"] != -1])
    assert 'no detection has class "unknown", so UR is 0' in shell.err(*arguments(files), status=0)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("detections", "[", "cannot be read"),
        ("detections", truth(), "ground-truth file"),
        ("detections", '[{"image_id": 1, "category_id": 10, "bbox": [0, 0, 1, NaN], "score": 1}]', "cannot be read"),
        ("detections", [{**results()[0], "category_id": 77}], "does not name"),
        ("detections", [{"image_id": 1, "bbox": [0, 0, 1, 1], "score": 1}], "does not name"),
        ("detections", [{**results()[0], "category": "dog"}], "different classes"),
        ("detections", [{**results()[0], "category_id": NUMBERS["cup"]}], "unknown in task t1"),
        ("detections", [{**results()[0], "bbox": [0, 0, -1, 1]}], "impossible box"),
        ("detections", [{**results()[0], "score": 2}], "score"),
        ("detections", [{**results()[0], "image_id": 77}], "not in the ground truth"),
        ("classes", {"tasks": [{**TASK, "prev": ["dog"]}]}, "listed twice"),
        ("classes", {"tasks": [{**TASK, "rest": ["truck"]}]}, "does not name"),
        ("classes", {"tasks": [{**TASK, "cur": ["person", "wombat"]}]}, "no category of 1 known"),
        ("classes", {"known": ["dog"]}, "cannot be read"),
    ],
)
def test_bad_input_is_one_clear_error_and_writes_nothing(
    files: dict[str, Path], tmp_path: Path, shell: Shell, name: str, content: object, message: str
) -> None:
    write(files[name], content)
    assert message in shell.err(*arguments(files, "--out", str(tmp_path / "out")))
    assert not (tmp_path / "out").exists()


def test_classes_of_later_tasks_may_be_left_out(files: dict[str, Path], shell: Shell) -> None:
    expected = evaluate(files, shell)["t1/clean"]
    row = {"image_id": 1, "category": "cup", "bbox": [0, 0, 9, 9], "score": 0.9}
    write(files["detections"], [*results(), row])
    message = shell.err(*arguments(files))
    assert "try: are they of a later task than t1? --task chooses it; --on-error classes=drop leaves out" in message
    for option in ("classes=drop", "stray=drop"):
        found = evaluate(files, shell, "--on-error", option)
        assert found["t1/clean"] == expected
        assert found["inputs"]["t1"]["detections"]["reported"] == {
            "left out: detections of classes that are unknown in this task": 1
        }


def manifest_of(folder: Path, lists: dict[str, tuple[str, ...]]) -> str:
    """Write a manifest of two tasks: person and dog, then the other classes."""
    parts = [
        listed_part(f"{task}-test", ids, order="listed", task=task, repeats=len(ids) - len(set(ids)))
        for task, ids in lists.items()
    ]
    return write_toy(
        folder,
        {f"{task}-test": ids for task, ids in lists.items()},
        [ClassEntry(name=name, role="known", index=k) for k, name in enumerate(NAMES)],
        name="owod/toy",
        taxonomy="OWOD",
        parts=parts,
        tasks=(TaskEntry(name="t1", introduced=NAMES[:2]), TaskEntry(name="t2", introduced=NAMES[2:])),
    )


def test_a_manifest_names_tasks_class_ids_and_images(files: dict[str, Path], tmp_path: Path, shell: Shell) -> None:
    expected = evaluate(files, shell)["t1/clean"]
    del files["classes"]
    ids = tuple(f"coco:{image:012d}" for image in EXAMPLE)
    manifest = manifest_of(tmp_path / "owod", {"t1": ids, "t2": ids * 2})
    # Unknown has the id after the last class, 8; the known classes are numbered from 0.
    rows = [{**row, "category_id": row["category_id"] - 10 if row["category_id"] > 0 else 8} for row in results()]
    write(files["detections"], rows)
    by_index = "--category-ids", "manifest"
    found = evaluate(files, shell, "--manifest", manifest, "--task", "t1", *by_index)
    assert found["t1/clean"] == expected
    assert found["category_ids"] == "manifest"
    assert found["manifest"]["parts"] == ["t1-test"]
    assert found["manifest"]["digest"].startswith("sha256:")
    assert "more than once" in shell.err(*arguments(files, "--manifest", manifest, "--task", "t2"))
    last = evaluate(files, shell, "--manifest", manifest, "--task", "t2", "--on-error", "repeats=keep", *by_index)[
        "t2/clean"
    ]
    assert (last["counts"]["lines"], last["num_unknown_gt"], last["UR"]) == (22, 0, None)
    same = evaluate(files, shell, "--manifest", manifest, "--task", "t2", "--part", "t1-test", *by_index)
    assert same["t2/clean"]["counts"]["lines"] == 11
    assert "no such part" in shell.err(*arguments(files, "--manifest", manifest, "--task", "t1", "--part", "t9-test"))
    write(files["detections"], [{**rows[0], "category_id": 90}])
    assert "unknown (8 or -1 or unknown)" in shell.err(
        *arguments(files, "--manifest", manifest, "--task", "t1", *by_index)
    )


def test_ids_are_those_of_the_truth_and_another_numbering_is_refused(
    files: dict[str, Path], tmp_path: Path, shell: Shell
) -> None:
    """Detections under the dataset's own ids (10, 11, ...) are read right, those under indices (0, 1, ...) refused."""
    expected = evaluate(files, shell)["t1/clean"]
    del files["classes"]
    ids = tuple(f"coco:{image:012d}" for image in EXAMPLE)
    given = ["--manifest", manifest_of(tmp_path / "owod", {"t1": ids}), "--task", "t1"]
    found = evaluate(files, shell, *given)
    assert (found["t1/clean"], found["category_ids"]) == (expected, "truth")
    assert evaluate(files, shell, *given, "--category-ids", "truth")["t1/clean"] == expected
    message = shell.err(*arguments(files, *given, "--category-ids", "manifest"))
    assert "does not name" in message
    assert "--category-ids truth" in message

    rows = [{**row, "category_id": row["category_id"] - 10 if row["category_id"] > 0 else 8} for row in results()]
    write(files["detections"], rows)
    for stray in ("error", "drop"):
        message = shell.err(*arguments(files, *given, "--on-error", f"stray={stray}"))
        assert "--category-ids manifest" in message
        assert "10 person" in message
    both = [{**row, "category": {0: "person", 1: "dog", 8: "unknown"}[row["category_id"]]} for row in rows]
    write(files["detections"], both)
    message = shell.err(*arguments(files, *given))
    assert "name different classes" in message
    assert "--category-ids manifest" in message
    write(files["detections"], [{**rows[0], "category_id": 5}])
    assert "found: category_id 5;" in shell.err(*arguments(files, *given))
    alone = [text for text in arguments(files, "--category-ids", "truth") if text]
    assert "--category-ids" in shell.err(*alone)
