"""Leaks: whether an image of a benchmark is in a corpus that models are trained on.

The package itself can be called: ``curation.leaks(...)`` is `curation.extensions.leaks.run.leaks`.
"""

from __future__ import annotations

from curation.core.callable_package import make_callable

make_callable(__name__)
