"""Identify: which published list is this? By what it holds, never by its name.

The package itself can be called: ``curation.identify(...)`` is `curation.identify.run.identify`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package that is also the public function of its name."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Say which published lists some files are (see `curation.identify.run.identify`)."""
        from curation.identify.run import identify

        return identify(*given, **named)


sys.modules[__name__].__class__ = _Callable
