"""`diff`: two manifests, or two results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from curation.core.arguments import checked
from curation.evaluation.result import Result
from curation.extensions.diff.results import ResultDiff
from curation.manifest.manifest import Manifest

if TYPE_CHECKING:
    from curation.manifest.diff import ManifestDiff


@checked
def diff(old: Manifest | Result | Path | str, new: Manifest | Result | Path | str) -> ManifestDiff | ResultDiff:
    """Compare two manifests, or two results of one evaluation.

    Parameters
    ----------
    old, new : Manifest, Result, Path or str
        a manifest, its folder or NAME@VERSION; a result, its folder or JSON file; or, beside a
        result, a file of another evaluator's numbers

    Raises
    ------
    ManifestError, EvaluationError, UsageError
        A file is missing, or the two differ in kind or come from different evaluations.

    Examples
    --------
    >>> import curation
    >>> curation.diff("elephant/val2017", "elephant/val2017").verdict
    'none'
    """
    from curation.extensions.diff.results import compare_files
    from curation.manifest.diff import diff_manifests
    from curation.manifest.locate import load

    if (result := compare_files(old, new)) is not None:
        return result
    return diff_manifests(*(load(side) if isinstance(side, str | Path) else side for side in (old, new)))  # type: ignore[arg-type]
