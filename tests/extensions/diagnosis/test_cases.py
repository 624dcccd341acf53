"""Files that people hold: of each reported case the command a user types, with its right value, diagnosis or refusal.

The values are those of pycocotools on files that were mended by hand (README of each case); what a message advises is
run.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from curation.cli import main
from tests.real_files import real_files


class Mended(NamedTuple):
    """The AP after the commands that `inspect` prints."""

    value: float


class Tried(NamedTuple):
    """What a command gives after the shell command of a refusal was run."""

    command: str
    right: float | str | Mended


Right = float | str | Mended | Tried
COCO = "evaluate coco --truth"
ROWS = "rows.jsonl --detections dets.json"
CASES: list[tuple[str, str, Right]] = [
    ("03", f"{COCO} test/_annotations.coco.json --detections predictions_1based.json", 53.286),
    ("03", f"{COCO} . --detections predictions_1based.json", 53.286),
    ("03", f"{COCO} . --detections predictions_0based.json", "Category ids are off by -1"),
    ("03", "inspect test/_annotations.coco.json --detections predictions_1based.json", "no mistake found"),
    ("03", "inspect test/_annotations.coco.json --detections predictions_0based.json", Mended(53.286)),
    ("05", f"{COCO} annotations.json --detections predictions.json", 0.22),
    ("05", "inspect annotations.json", "has id 0: pycocotools counts"),
    ("12", f"{COCO} truth.json --detections dets.json", "curation inspect FILE --renumber NEW.json"),
    ("12", "inspect truth.json --detections dets.json", Mended(58.118)),
    ("14", f"{COCO} truth.json --detections dets.json", "The annotation file lists no categories"),
    ("14", "inspect truth.json --detections dets.json", "The truth lists no categories: its 86 annotations"),
    ("15", f"{COCO} truth.json --detections dets.json", "curation inspect FILE prints the command"),
    ("15", "inspect truth.json --detections dets.json", Mended(58.118)),
    *(
        row
        for truth in ("mine", "VOCb/VOC2007", "VOCdevkit/VOC2007")
        for row in (
            ("16", f"{COCO} {truth} --detections dets.json --classes classes.json", 44.848),
            ("16", f"{COCO} {truth} --detections dets.json", "'feright' (4) like 'freight_car' (23)"),
            ("16", f"inspect {truth}", "'truvk' (1) like 'truck' (25)"),
        )
    ),
    ("16", f"{COCO} right_truth.json --detections dets.json", 49.802),
    ("19", f"{COCO} instances_default.json --detections dets.json", "All 86 objects of the truth are crowd"),
    ("19", "inspect instances_default.json --detections dets.json", Mended(58.118)),
    ("21", "audit .", "neighbouring frames may be on both sides (2: test, val)"),
    ("21", "audit . --group images/(mouse_[A-Z])_f", "210 of 210 lines of train and 60 of 60 lines of val"),
    ("22", "audit .", "both hold 7 images"),
    ("22", "audit . --group (FELIX[^_/]*)_", "159 groups on both sides"),
    *(
        ("28", f"inspect truth.json --detections {name}.json", Mended(value))
        for name, value in (("allstr", 58.118), ("strings", 58.118), ("names", 58.118), ("mended", 58.118))
    ),
    ("28", "inspect truth.json --detections nan.json", "1 record without four finite numbers in bbox"),
    ("35", f"{COCO} rf --image-set test --detections predictions.json", 51.262),
    ("35", f"{COCO} cvat --image-set train --detections predictions.json", 51.262),
    ("35", f"{COCO} pose2 --image-set val --detections predictions.json", 51.262),
    ("35", f"{COCO} pose3 --image-set val --detections predictions.json", 51.262),
    ("35", f"{COCO} pose2 --detections predictions.json", "--image-set=train"),
    *(
        ("35", command, Tried(f"{COCO} {name} --image-set val --detections predictions.json", 51.262))
        for name in ("ls", "dk")
        for command in (f"{COCO} {name} --detections predictions.json", f"inspect {name}")
    ),
    ("35", f"{COCO} truth.json --detections pred_conf", 51.262),
    ("35", f"{COCO} truth.json --detections pred_segconf", 51.262),
    ("35", f"{COCO} truth.json --detections pred_noconf", "--variant score-free"),
    ("35", f"{COCO} truth.json --detections pred_noconf --variant score-free", "81.36"),
    ("35", f"{COCO} rf --image-set test --detections predictions_84.json", 51.262),
    ("35", f"{COCO} rf --image-set test --detections predictions_84_onlyhat.json", 24.202),
    ("35", "inspect rf --detections predictions_84.json", "no mistake found"),
    *(
        ("36", f"{COCO} {name}.json --detections dets.json", 54.280)
        for name in (
            "truth", "fiftyone_labels", "n_area", "n_catid", "n_crowd", "n_crowdbool", "n_imgid", "n_info", "n_kp",
            "n_lic", "n_seg", "n_super", "n_wh",
        )
    ),
    *(
        ("36", command.format(COCO=COCO, name=name), advice)
        for name, advice in (
            ("obb_predictions", "oriented boxes (OBB)"),
            ("rotated_bbox5", "oriented boxes (OBB)"),
            ("segm_results_no_bbox", "pycocotools.mask.toBbox"),
            ("ultralytics_to_json", "write the name of its photo into each record"),
        )
        for command in ("{COCO} truth.json --detections {name}.json", "inspect truth.json --detections {name}.json")
    ),
    *(
        ("36", f"{COCO} {name} --detections dets.json", Tried(f"inspect {ROWS}", Mended(54.28)))
        for name in ("dota", "kitti", "visdrone")
    ),
    ("36", "inspect wider", Tried("inspect rows.jsonl", "face   30      77")),
    ("36", "inspect labelme.json", "Annotations of labelme are not read"),
    ("36", "inspect ls_native.json", "Annotations of Label Studio's own JSON are not read"),
    ("37", f"{COCO} labels.json --detections dets.json", 54.280),
    ("37", f"{COCO} yolo --image-set val --detections dets.json", 54.280),
    # FiftyOne cuts corners to whole pixels: pycocotools has 53.954 of the boxes in the XML.
    ("37", f"{COCO} voc --detections dets.json", 53.954),
    ("40", f"{COCO} truth.json --detections gdino.json", "--on-error classes=drop"),
    ("40", f"{COCO} truth.json --detections gdino.json --on-error classes=drop", 42.208),
    ("40", "inspect truth.json --detections gdino.json", Mended(42.208)),
    ("41", "inspect truth.json --detections contiguous0.json", Mended(55.608)),
    ("41", "inspect truth.json --detections na_class.json", Mended(49.414)),
    ("41", f"{COCO} truth.json --detections na_class.json --on-error classes=drop", 49.414),
]  # fmt: skip


def printed(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a command prints; a traceback or an unknown status fails."""
    capsys.readouterr()
    assert main(shlex.split(command)) in (0, 1, 2)
    return "".join(capsys.readouterr())


def require(command: str, right: Right, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a command in the folder of its case, and what it advises, and require what is right."""
    text = printed(command, capsys)
    if isinstance(right, str):
        assert right in text, text
    elif isinstance(right, float):
        [value] = re.findall(r"(?m)^  AP +% +(\S+)", text)
        assert float(value) == pytest.approx(right, abs=0.006), text
    elif isinstance(right, Tried):
        [advice] = re.findall(r"(?m)^  try: (.*)$", text)
        subprocess.run(["sh", "-c", advice.partition(" writes what")[0]], check=True)
        require(right.command, right.right, capsys)
    else:
        words = shlex.split(command)
        truth, detections = words[1], words[3]
        steps = text.partition("all at once:\n   ")[2] or re.findall(r"(?m)^   curation (inspect .*)$", text)[0]
        for step in steps.strip().split(" && "):
            step = step.removeprefix("curation ")
            printed(step, capsys)
            written = shlex.split(step)[-1]
            truth, detections = (truth, written) if "--detections" in step else (written, detections)
        require(f"{COCO} {truth} --detections {detections}", right.value, capsys)
        assert "no mistake found" in printed(f"inspect {truth} --detections {detections}", capsys)


@real_files("cases")
@pytest.mark.parametrize(("case", "command", "right"), CASES)
@pytest.mark.filterwarnings("ignore:.*is read as a separate dataset")
def check_a_reported_case_gets_its_right_answer(
    case: str,
    command: str,
    right: Right,
    shared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if isinstance(right, Tried) and shutil.which("awk") is None:
        return
    shutil.copytree(shared / "data" / "cases" / case, tmp_path / "case", copy_function=shutil.copyfile)
    monkeypatch.chdir(tmp_path / "case")
    require(command, right, capsys)
