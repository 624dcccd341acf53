"""Identify: which published list is this? By what it holds, never by its name.

The package itself can be called: ``curation.identify(...)`` is `curation.extensions.identify.run.identify`.
"""

from __future__ import annotations

from curation.core.callable_package import make_callable

make_callable(__name__)
