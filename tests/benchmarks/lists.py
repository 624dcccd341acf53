"""Lists of ids: a million lines audited and identified."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from curation.core.writing import write_text
from tests.benchmarks.own_process import Clock

LISTS, LINES, IMAGES = 40, 25_000, 120_000


def audit(folder: Path, clock: Clock) -> None:
    """Read lists of a million lines and judge them by the audit's rules."""
    from curation.extensions.audit.lists import read_lists
    from curation.extensions.audit.run import run_audit
    from curation.extensions.audit.target import folder_target

    with clock:
        judged = run_audit(folder_target(read_lists(folder / "lists")))
    failed = {result.rule.name for result in judged.results if result.outcome.verdict == "fail"}
    assert {"DS1", "DS2", "DS4"} <= failed, "the lists are drawn to break these rules"


def identify(folder: Path, clock: Clock) -> None:
    """Look a list of a million lines up that is in no index, as a command."""
    command = [sys.executable, "-m", "curation", "identify", str(folder / "long.txt")]
    with clock:
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def draw(folder: Path, clock: Clock) -> None:
    """Write 40 lists of 25,000 COCO ids, some with VOC's among them or with repeats; one of a million paths."""
    if (folder / "long.txt").exists():
        return
    generator = np.random.default_rng(40)
    numbers = np.sort(generator.choice(581_929, IMAGES, replace=False) + 1)
    for count in range(LISTS):
        lines = [f"{n:012}" for n in generator.choice(numbers, LINES, replace=count % 8 == 7).tolist()]
        if count % 5 == 4:
            lines[: LINES // 5] = [f"{n + 1:06}" for n in generator.choice(9_963, LINES // 5, replace=False).tolist()]
        name = f"t{count // 4 + 1}_{('train', 'val', 'ft', 'test')[count % 4]}.txt"
        write_text(folder / "lists" / name, "".join(f"{line}\n" for line in lines))
    ids = generator.permutation(10_000_000)[: LISTS * LINES].tolist()
    lines = [f"imagenet/train/n{k % 1000:08d}/n{k:08d}_{k}.JPEG {k % 1000}\n" for k in ids]
    write_text(folder / "long.txt", "".join(lines))
