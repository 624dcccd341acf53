"""The main commands, from the start of Python to their end, beside those of the previous release.

``make bench PREVIOUS=REVISION`` installs that revision into a folder, which the variable ``CURATION_PREVIOUS`` names.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from curation.core.writing import write_text
from tests.benchmarks import builds, coco_ap, lists, open_set
from tests.benchmarks.large_files import coco_file, voc_folder
from tests.benchmarks.own_process import Clock

PREVIOUS = os.environ.get("CURATION_PREVIOUS", "")

COMMANDS = {
    "list": "list",
    "build": "build elephant --source voc2007-test={voc} --source coco={coco} --out {out}/manifest",
    "elephant": (
        "evaluate elephant --out {out} --truth closed={elephant}/closed_truth.json"
        " --truth wilderness={elephant}/wilderness_truth.json --detections closed={elephant}/closed_results.json"
        " --detections wilderness={elephant}/wilderness_results.json"
    ),
    "owod": (
        "evaluate owod --out {out} --truth {large}_truth.json --detections {large}_results.json"
        " --classes {folder}/tasks.json --task t2 --on-error stray=drop"
    ),
    "coco": "evaluate coco --out {out} --truth {large}_truth.json --detections {large}_results.json",
    "inspect": "inspect {large}_truth.json --detections {large}_results.json",
    "audit": "audit {folder}/lists --out {out}",
    "identify": "identify {folder}/long.txt",
    "cut": "cut {large}_truth.json -k 4 --out {out}",
}
"""Commands by their name in the table of ``make bench``."""


def draw(folder: Path, clock: Clock) -> None:
    """Write the input of all commands."""
    builds.draw(folder, clock)
    coco_ap.draw(folder, clock, "large")
    open_set.draw(folder, clock)
    lists.draw(folder, clock)
    names = [f"class {number:04d}" for number in range(1, coco_ap.SIZES["large"][1] + 1)]
    tasks = [
        {"name": f"t{n + 1}", "prev": names[: 20 * n], "cur": names[20 * n : 20 * n + 20], "rest": names[20 * n + 20 :]}
        for n in range(4)
    ]
    write_text(folder / "tasks.json", json.dumps({"tasks": tasks}))


def run(folder: Path, clock: Clock, name: str, package: str) -> None:
    """Run a command of the package in this folder, or of this tree; what an audit finds sets its exit status."""
    out = folder / "command-output"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    places = {
        "folder": folder,
        "out": out / name,
        "coco": coco_file(folder),
        "voc": voc_folder(folder),
        "large": folder / "coco" / "large",
        "elephant": folder / "elephant",
    }
    words = [word.format_map(places) for word in COMMANDS[name].split()]
    # A revision that keeps parsed sources parses them anew here, as on the first run.
    environment = os.environ | {"CURATION_CACHE": str(out / "cache")} | ({"PYTHONPATH": package} if package else {})
    with clock:
        done = subprocess.run(
            [sys.executable, "-m", "curation", *words], stdout=subprocess.DEVNULL, env=environment, cwd=out
        )
    assert done.returncode in (0, 1), f"{' '.join(words)}: exit status {done.returncode}"
