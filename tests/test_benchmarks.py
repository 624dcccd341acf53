"""What benchmarks say of memory is of the part that is measured, and not of the process that started it."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.own_process import peak_gib, spent_by

GIB = 1 << 30


@pytest.mark.skipif(sys.platform != "linux", reason="the high-water mark of a program is read from /proc")
def test_the_peak_of_a_part_is_its_own(tmp_path: Path) -> None:
    # Written to, so that the memory is there and not only promised.
    held = np.ones(400 << 20, np.uint8)
    assert peak_gib() > 400 / 1024
    small = spent_by("start = clocks(); spent, count = clocks() - start, 7", tmp_path)
    large = spent_by(
        "start = clocks(); held = numpy.ones(200 << 20, numpy.uint8); spent, count = clocks() - start, 7", tmp_path
    )
    assert held.any()
    assert (small.count, large.count) == (7, 7)
    # Python with NumPy takes some tens of mebibytes; the parent holds 400 and more.
    assert small.gib < 200 / 1024
    assert 200 / 1024 < large.gib < 400 / 1024
    assert large.gib - small.gib == pytest.approx(200 / 1024, rel=0.25)
    assert min(small.seconds, small.cores) >= 0


BENCHMARKS = sorted((Path(__file__).parent / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(path: Path) -> None:
    # Parts run in processes of their own as scripts in texts: neither the linter nor the type checker reads those.
    imports = re.findall(
        r"^ *from (curation\.[\w.]+) import ([\w, ]+)$", path.read_text(encoding="utf-8"), re.MULTILINE
    )
    for module, names in imports:
        found = importlib.import_module(module)
        for name in names.split(","):
            assert hasattr(found, name.split()[0]), f"{module} has no {name}"
