"""`Forks`: runs commands in children of one process that has imported everything (see `tests.torture.child`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_MODULES = (
    "PIL.JpegImagePlugin",
    "curation.extensions.audit.many",
    "curation.extensions.benchmarks.openood",
    "curation.cli.output",
    "curation.cli.signature",
    "curation.review.decisions.from_files",
    "curation.evaluation.figures",
    "curation.extensions.image_ood.evaluation",
    "curation.evaluation.leaderboard_rows",
    "curation.evaluation.result",
    "curation.extensions.detection_ap.voc",
    "curation.benchmarks.calls",
    "curation.benchmarks.exporting",
    "curation.publishing.loading",
    "curation.extensions.leaks.run",
    "curation.manifest.manifest",
    "curation.review.proposals.from_files",
    "curation.publishing.exporting",
    "curation.publishing.parquet",
    "curation.review.app.session",
    "curation.signals.similarity.from_files",
    "curation.sources.opening",
    "curation.extensions.diagnosis.presence",
    "filelock",
    "matplotlib.figure",
    "multiprocessing.synchronize",
    "pyarrow.parquet",
    "tqdm",
)


class Forks:
    """A process that forks commands, until it is closed.

    Parameters
    ----------
    folder : Path
        Its working directory.
    """

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        environment["PYTHONPATH"] = str(Path(__file__).parents[2])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.child", *_MODULES],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def run(self, *requests: Mapping[str, Any]) -> list[int]:
        """Run children side by side, and return their statuses."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(requests) + "\n")
        self._process.stdin.flush()
        statuses: list[int] = json.loads(self._process.stdout.readline())
        return statuses
