"""Where the evaluation of each protocol is: found by name, so that no engine needs to know a paper.

Plain detection has its modules here. A benchmark's room is ``curation.benchmarks.NAME``: its module ``evaluation`` has
a function ``evaluate``, whose signature declares the options of the command line, and a
`curation.evaluation.result.Report` named ``REPORT``. A benchmark of one file declares both in ``NAME.toml``. Another
package's benchmark, offered under the entry point ``curation.benchmarks`` as ``PACKAGE:BENCHMARK``, is evaluated where
its package has such a module ``evaluation``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module, metadata, resources, util
from types import ModuleType
from typing import Any

from curation.arguments import checked
from curation.errors import UsageError
from curation.evaluation.measures import Measure, ranked

_PLAIN = {"voc": "curation.evaluation.voc", "coco": "curation.evaluation.coco_engine"}
_ROOMS = "curation.benchmarks"


def _declared() -> ModuleType:
    """Return the module that knows the benchmarks of one file."""
    return import_module(f"{_ROOMS}.declared")


@cache
def _own() -> tuple[str, ...]:
    """Return the rooms of this package that evaluate, then plain detection, without importing any of them."""
    rooms = (room for room in resources.files(_ROOMS).iterdir() if (room / "evaluation.py").is_file())
    return (*sorted([*(room.name for room in rooms), *_declared().names("evaluation")]), *_PLAIN)


def _module(protocol: str) -> Any:
    """Return what holds ``evaluate`` and ``REPORT`` of a protocol; None for one that is not known here."""
    if protocol in _PLAIN:
        return import_module(_PLAIN[protocol])
    if protocol in _declared().names("evaluation"):
        return _declared().evaluation(protocol)
    if protocol in _own():
        return import_module(f"{_ROOMS}.{protocol}.evaluation")
    found = (one.module for one in metadata.entry_points(group=_ROOMS, name=protocol))
    return next((import_module(f"{room}.evaluation") for room in found if _evaluates(room)), None)


def _evaluates(room: str) -> bool:
    """Return whether another package's room has an evaluation; a package that cannot be imported has none."""
    try:
        return util.find_spec(f"{room}.evaluation") is not None
    # Whatever another package raises while it is imported must not take the other protocols away.
    except Exception:
        return False


def protocols() -> tuple[str, ...]:
    """Return the names of all protocols that evaluate: rooms of this package, plain detection, other packages'."""
    offered = sorted(one.name for one in metadata.entry_points(group=_ROOMS) if _evaluates(one.module))
    return (*_own(), *(name for name in offered if name not in _own()))


def evaluation_of(protocol: str) -> Callable[..., Any]:
    """Return the function that evaluates a protocol, a `curation.evaluation.result.Result`, its arguments checked.

    Raises
    ------
    UsageError
        There is no such benchmark.
    """
    evaluate = _known(protocol).evaluate
    return checked(evaluate, called=f"The evaluation {protocol}", hint=f"curation evaluate {protocol} --help")


def report_of(protocol: str) -> Any:
    """Return the `curation.evaluation.result.Report` of a protocol: how its results show themselves.

    Raises
    ------
    UsageError
        There is no such benchmark.
    """
    return _known(protocol).REPORT


def measures_of(protocol: str) -> Sequence[Measure]:
    """Return the ranked measures of a protocol; none for one that is not known here."""
    module = _module(protocol)
    return () if module is None else ranked(module.REPORT.measures)


def _known(protocol: str) -> Any:
    module = _module(protocol)
    if module is None:
        near = get_close_matches(protocol, protocols(), 1)
        raise UsageError(
            "There is no such benchmark",
            where=protocol[:80],
            expected=", ".join(protocols()),
            hint=f"did you mean {near[0]}?" if near else "curation evaluate --help",
        )
    return module
