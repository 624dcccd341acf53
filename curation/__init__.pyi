from typing import Any

from curation import evaluate as evaluate
from curation.benchmarks import methods as methods
from curation.benchmarks.building import build as build
from curation.benchmarks.building import import_lists as import_lists
from curation.benchmarks.exporting import export as export
from curation.benchmarks.leaderboard import leaderboard as leaderboard
from curation.benchmarks.publishing import publish as publish
from curation.benchmarks.rules.split import split as split
from curation.benchmarks.verification import verify as verify
from curation.core.errors import CurationError as CurationError
from curation.extensions.audit.run import audit as audit
from curation.extensions.diagnosis.diagnosis import inspect as inspect
from curation.extensions.diff.results import diff as diff
from curation.extensions.identify.run import identify as identify
from curation.extensions.leaks.run import leaks as leaks
from curation.manifest.locate import load as load
from curation.manifest.manifest import Manifest as Manifest
from curation.publishing.hub import pull as pull
from curation.sources.opening import open_source as open_source
from curation.sources.source import Source as Source
from curation.version import __version__ as __version__

__all__: list[str]

def __getattr__(name: str) -> Any: ...
