"""Audit: is this split sound? Rules a sound benchmark obeys, judged on any lists and the sources behind them.

The package itself can be called: ``curation.audit(...)`` is `curation.extensions.audit.run.audit`.
"""

from __future__ import annotations

from curation.core.callable_package import make_callable

make_callable(__name__)
