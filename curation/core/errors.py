"""The error tree: each kind of user mistake has a class here, and every message states the next step."""

from __future__ import annotations

import re
import shlex
import sys
import warnings
from importlib.metadata import requires
from typing import Any

_PACKAGE = __name__.partition(".")[0]


class CurationError(Exception):
    """A mistake in the input or the request, with a hint how to correct it.

    Parameters
    ----------
    what : str
        What went wrong, one sentence without a final full stop.
    where : str, optional
        The file, record or option concerned, e.g. ``"instances.json: annotations[17]"``.
    expected, found : str, optional
        The correct value, and the actual one.
    hint : str, optional
        The next thing to try, preferably a command.

    Examples
    --------
    >>> import curation
    >>> try:
    ...     curation.load("elephant/val2017").ids("test")
    ... except curation.CurationError as caught:
    ...     error = caught
    >>> print(error)
    The manifest has no such part
      where: elephant/val2017 1.0.0
      expected: closed, wilderness, wr0.1-hash
      found: 'test'
    """

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.what, self.where, self.expected, self.found, self.hint = what, where, expected, found, hint
        super().__init__(what)

    def __str__(self) -> str:
        details = {"where": self.where, "expected": self.expected, "found": self.found, "try": self.hint}
        return "\n".join([self.what, *(f"  {label}: {text}" for label, text in details.items() if text)])

    def as_dict(self) -> dict[str, Any]:
        """Return the error as plain data, which ``--json`` prints: class name, what, where, expected, found, hint.

        Examples
        --------
        >>> error.as_dict()["error"], error.as_dict()["found"]
        ('ManifestError', "'test'")
        """
        fields = ("what", "where", "expected", "found", "hint")
        return {"error": type(self).__name__, **{name: getattr(self, name) for name in fields}}


def of_the_machine(error: OSError | MemoryError | RecursionError | UnicodeError) -> CurationError:
    """Return an error of the machine (full disk, memory, recursion) as an error of the tree."""
    if isinstance(error, OSError):
        path = None if error.filename is None else str(error.filename)
        return CurationError(f"Operating-system error: {error.strerror or error}", where=path)
    if isinstance(error, UnicodeError):
        return CurationError(f"A text cannot be read or written in this encoding: {error}")
    nested = isinstance(error, RecursionError)
    return CurationError(f"Out of resources: {'the input is nested too deeply' if nested else 'not enough memory'}")


class CurationWarning(UserWarning):
    """A caller should know this about a valid result; the command line prints it as ``warning: …``."""


class ResultWarning(CurationWarning):
    """A caller should know this about the numbers of a result; `Result.warnings` contains it too."""


def warn_caller(text: str, category: type[CurationWarning] = CurationWarning) -> None:
    """Raise a warning at the line outside the package that called it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


class UsageError(CurationError):
    """A command or function was called with arguments that cannot work."""


class MissingFileError(CurationError):
    """A file or folder that was named does not exist or cannot be read."""


class MissingExtraError(CurationError):
    """An optional package is needed and not installed; see `install_command` for its hint."""


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an extra, by their own names.

    The packages are named one by one, because no index has this package if it was installed from a checkout or a wheel.
    """
    marker = re.compile(rf"extra == ['\"]{re.escape(extra)}['\"]")
    needed = [text.partition(";")[0].strip() for text in requires(_PACKAGE) or () if marker.search(text)]
    return f"pip install {shlex.join(needed)}"


class OverwriteError(CurationError):
    """An output would replace an input of the same command, or, without ``--force``, a file that exists."""


class WriteError(CurationError):
    """The machine refuses to write an output: no space is left, or a quota or limit is reached."""


class PathEscapeError(CurationError):
    """A path from an input file leads outside the folder it belongs to."""


class ImageIdError(CurationError):
    """A text is not a namespaced image id such as ``coco:000000397133``."""


class CanonicalFormError(CurationError):
    """A value has no canonical JSON form here (floats, non-ASCII keys, large integers, other types)."""


class SourceError(CurationError):
    """A raw dataset cannot be read."""


class AnnotationFormatError(SourceError):
    """An annotation file is not in the format it should be in (syntax, types, missing fields, truncation)."""


class ForeignClassError(AnnotationFormatError):
    """An object has a class that its dataset does not have."""


class DamagedFileError(AnnotationFormatError):
    """An annotation file is damaged: it is cut off, or its bytes are not text."""


class DuplicateIdError(SourceError):
    """Two records of a file have the same id."""


class DanglingIdError(SourceError):
    """A record refers to an image or category that the file does not define."""


class BoxError(SourceError):
    """A box is not finite, has a negative size, or is beyond any image."""


class PresenceOnlyError(SourceError):
    """Boxes are needed but the source only says which classes an image shows."""


class UnitBoxesError(SourceError):
    """Boxes in pixels are needed, and the source has only shares of an image whose size it does not know."""


class ManifestError(CurationError):
    """A manifest is missing, malformed or inconsistent."""


class VersionChainError(ManifestError):
    """A manifest supersedes itself or a later version, so that no version of it would be the last."""


class DigestMismatchError(ManifestError):
    """A manifest, or a file of it, differs from its pinned digest."""

    exit_code = 1


class MissingListError(ManifestError):
    """A part of a manifest has no id list available (a header-only manifest)."""


class ProtocolError(CurationError):
    """A protocol cannot be built from these sources with these parameters."""


class PredictionError(CurationError):
    """A predictions file is malformed or does not belong to the ground truth."""


class EvaluationError(CurationError):
    """Ground truth and predictions do not allow the requested evaluation."""


class LeaderboardError(CurationError):
    """A file of leaderboard rows is malformed or contradicts itself."""


class ExportError(CurationError):
    """A manifest cannot be written in the requested format."""


class HierarchyError(CurationError):
    """A class hierarchy, or a question about it, is inconsistent."""


class CutError(CurationError):
    """A co-occurrence graph cannot be cut with these settings."""


class ProposalError(CurationError):
    """Proposals cannot be made from these inputs, or a proposals file is malformed."""


class ReviewError(CurationError):
    """A review cannot be started, continued or recorded as asked: no database, nothing selected, no reviewer."""


class DecisionError(CurationError):
    """Recorded decisions are malformed, stale, or do not fit the manifest."""


class DecisionConflictError(DecisionError):
    """Decisions of a stage contradict each other on an image, and no rule resolves the conflict."""


class EncoderError(CurationError):
    """An encoder cannot be created from its name, or cannot encode its input."""


class EmbeddingError(CurationError):
    """Embeddings are malformed, unfinished, of another encoder, or could not be computed for any image."""


class SimilarityError(CurationError):
    """Vectors cannot be compared as asked."""


class EngineError(CurationError):
    """A block of work failed, an engine is unavailable, or its output folder is damaged or belongs to other work."""


class PublishError(CurationError):
    """A publication cannot be made, pushed or pulled as asked: a licence, a name, a tag, a token, the network."""


class PublicationMismatchError(PublishError):
    """The content of a hub differs from its publication record, or from the digest that the caller expects."""

    exit_code = 1
