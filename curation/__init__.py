"""Open-set evaluation data you can trust: protocols, manifests, and the scores that belong to them.

The names in ``__all__`` are the public interface; each is loaded when it is first used. Everything else can be
imported, but is not promised.
"""

from __future__ import annotations

from curation.version import __version__ as __version__

# Not from typing, which takes longer to import than all of this, before an interrupt is met.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from curation.audit.run import audit as audit
    from curation.benchmarks.building import build as build
    from curation.benchmarks.building import import_published as import_lists
    from curation.benchmarks.publishing import publish as publish
    from curation.benchmarks.verification import verify as verify
    from curation.errors import CurationError as CurationError
    from curation.evaluation.leaderboard.board import leaderboard as leaderboard
    from curation.identify.run import identify as identify
    from curation.interface import diff as diff
    from curation.interface import evaluate as evaluate
    from curation.interface import export as export
    from curation.interface import load as load
    from curation.leaks.run import leaks as leaks
    from curation.manifest.manifest import Manifest as Manifest
    from curation.publishing.hub import pull as pull
    from curation.sources.coerce import open_source as open_source
    from curation.sources.source import Source as Source

_HOMES = {
    "CurationError": "curation.errors:CurationError",
    "Manifest": "curation.manifest.manifest:Manifest",
    "Source": "curation.sources.source:Source",
    "audit": "curation.audit",
    "build": "curation.benchmarks.building:build",
    "diff": "curation.interface:diff",
    "evaluate": "curation.interface:evaluate",
    "export": "curation.interface:export",
    "identify": "curation.identify",
    "import_lists": "curation.benchmarks.building:import_published",
    "leaderboard": "curation.evaluation.leaderboard.board:leaderboard",
    "leaks": "curation.leaks",
    "load": "curation.interface:load",
    "open_source": "curation.sources.coerce:open_source",
    "publish": "curation.benchmarks.publishing:publish",
    "pull": "curation.publishing.hub:pull",
    "verify": "curation.benchmarks.verification:verify",
}
"""Where each public name is; ``audit``, ``identify`` and ``leaks`` are packages that can be called."""
__all__ = [
    "CurationError",
    "Manifest",
    "Source",
    "__version__",
    "audit",
    "build",
    "diff",
    "evaluate",
    "export",
    "identify",
    "import_lists",
    "leaderboard",
    "leaks",
    "load",
    "open_source",
    "publish",
    "pull",
    "verify",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    found = import_module(module)
    value = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
