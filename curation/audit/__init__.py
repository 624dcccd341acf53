"""Audit: is this split sound? Rules a sound benchmark obeys, judged on any lists and the sources behind them.

The package itself can be called: ``curation.audit(...)`` is `curation.audit.run.audit`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package that is also the public function of its name."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Audit a manifest or a folder of lists (see `curation.audit.run.audit`)."""
        from curation.audit.run import audit

        return audit(*given, **named)


sys.modules[__name__].__class__ = _Callable
