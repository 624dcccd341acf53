"""Leaks: whether an image of a benchmark is in a corpus that models are trained on.

The package itself can be called: ``curation.leaks(...)`` is `curation.leaks.run.leaks`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package that is also the public function of its name."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Look for the images of a benchmark in a corpus (see `curation.leaks.run.leaks`)."""
        from curation.leaks.run import leaks

        return leaks(*given, **named)


sys.modules[__name__].__class__ = _Callable
