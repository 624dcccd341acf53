"""Packages that are also the public function of their name: ``curation.audit(...)``."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class CallablePackage(ModuleType):
    """A package whose module ``run`` has a function of the package's name."""

    @property
    def __wrapped__(self) -> Any:
        """Return the function."""
        return getattr(import_module(f"{self.__name__}.run"), self.__name__.rpartition(".")[2])

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        """Return what the function says of itself, which `help` shows."""
        return self.__wrapped__.__doc__

    @property
    def __signature__(self) -> inspect.Signature:
        """Return the signature of the function."""
        return inspect.signature(self.__wrapped__)

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the function."""
        return self.__wrapped__(*given, **named)


def make_callable(name: str) -> None:
    """Make a package that is being imported callable."""
    sys.modules[name].__class__ = CallablePackage
