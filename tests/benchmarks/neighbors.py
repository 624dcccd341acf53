"""Top-50 of 5,000 queries among 118,000 references of 512 numbers, beside faiss's exact index, pair by pair.

Each runs in its own process. Both are given unit vectors in memory; faiss's time includes filling its index. Ours
multiplies in double precision, faiss in single.
"""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.measured import measured

QUERIES, REFERENCES, DIMENSION, K, PAIRS = 5_000, 118_000, 512, 50, 3
_COMMON = f"""
import sys, time, numpy
rng = numpy.random.default_rng(0)
queries, references = (rng.standard_normal((n, {DIMENSION}), dtype=numpy.float32) for n in ({QUERIES}, {REFERENCES}))
queries /= numpy.linalg.norm(queries, axis=1, keepdims=True)
references /= numpy.linalg.norm(references, axis=1, keepdims=True)
"""
_OURS = (
    _COMMON
    + f"""
from curation.similarity.neighbors import nearest
nearest(queries[:10], references[:1000], {K})
start = time.perf_counter()
places, scores = nearest(queries, references, {K})
"""
)
_FAISS = (
    _COMMON
    + f"""
import faiss
start = time.perf_counter()
index = faiss.IndexFlatIP({DIMENSION})
index.add(references)
scores, places = index.search(queries, {K})
"""
)
_END = "\nprint(time.perf_counter() - start)\nnumpy.savez(sys.argv[1], places=places, scores=scores)\n"


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, value, unit, what is required, whether it is met."""
    note = f"{QUERIES:,} x {REFERENCES:,} x {DIMENSION}, top-{K}; median of {PAIRS} interleaved pairs"
    if importlib.util.find_spec("faiss") is None:
        seconds, _ = _timed(_OURS, out / "ours.npz")
        return [measured("ours", seconds, "s", f"{note}; faiss is not installed: pip install faiss-cpu")]
    scripts = {"ours": _OURS, "faiss": _FAISS}
    rounds = [{name: _timed(script, out / f"{name}.npz") for name, script in scripts.items()} for _ in range(PAIRS)]
    seconds = {name: [one[name][0] for one in rounds] for name in scripts}
    ratio = statistics.median(ours / theirs for ours, theirs in zip(seconds["ours"], seconds["faiss"], strict=True))
    best = min(seconds["ours"]) / min(seconds["faiss"])
    ours, theirs = (rounds[-1][name][1] for name in scripts)
    same = float(np.mean(ours["places"] == theirs["places"]))
    gap = float(np.abs(ours["scores"] - theirs["scores"]).max())
    return [
        measured("ours", min(seconds["ours"]), "s", note),
        measured("faiss IndexFlatIP", min(seconds["faiss"]), "s", note),
        measured("ours / faiss, median of pairs", ratio, "ratio", f"best of each: {best:.2f}"),
        measured("places that agree", same, "share", "the others are ties to the last bit or nearly", least=0.999),
        measured("largest difference of a product", gap, "", note, most=1e-5),
    ]


def _timed(script: str, path: Path) -> tuple[float, Any]:
    done = subprocess.run([sys.executable, "-c", script + _END, str(path)], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1]), np.load(path, allow_pickle=False)
