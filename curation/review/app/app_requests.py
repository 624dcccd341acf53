"""What the App may ask of the server of a review: what shows and judges passes, what writes around the log does not.

FiftyOne's server can do more than a review needs: change any field, tag or saved view, run every operator of every
plugin, list folders, load other datasets. Whatever is not named here is refused, so a later release opens nothing new.

In Annotate mode the App saves each change of a drawn box by one HTTP request; FiftyOne calls no code of ours for it. So
the server's guard (`curation.review.app.guard`) reads the request, asks an `Edits` before it passes the request on, and
reports FiftyOne's answer: a log that is written first can be complete and in order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol
from urllib.parse import parse_qs

from curation.core.json_text import RepeatedKeyError, each_key_once
from curation.review.app.dataset import MISSING

MEDIA = "/media"
GRAPHQL = "/graphql"
OPERATORS = "/operators"
JUDGE = "/review/judge"
"""A verdict by key: the server of the review answers it itself (`curation.review.app.live_review`)."""

_FILES = r"/(datasets/)?(assets/.+|index\.html|favicon\.ico|[a-z_]+\.svg)"
"""What FiftyOne's own page loads; a page of a dataset may ask for it below its own address."""
_ASSETS = r"/plugins/.+\.(js|mjs|css|map|json|svg|png|wasm|woff2?)"
"""What a plugin's page loads; its Python files are nobody's business."""

_READ = re.compile(rf"/|/fiftyone|/features|{MEDIA}|/plugins|/ontologies(/.+)?|{_FILES}|{_ASSETS}")
_POST = re.compile(
    rf"{JUDGE}|{GRAPHQL}|{OPERATORS}(/execute(/generator)?|/resolve-(type|placements|execution-options)"
    r"|/subscribe-execution-store)?"
    r"|/aggregate|/events?|/sort|/tagging|/values|/geo|/embeddings/.+"
)
"""Questions, and what is selected or shown in the session of this server."""

_BUILT_IN = ("@voxel51/operators/", "@voxel51/panels/")
_HARMLESS = {
    "get_field_schema",
    "get_label_schemas",
    "get_similarity_search_subscription_notifier",
    "init_similarity_run",
    "list_saved_views",
    "list_similarity_runs",
    "list_valid_annotation_fields",
    "list_workspaces",
    "load_group_by",
    "load_saved_view",
    "load_workspace",
    "reload_saved_view",
    "similarity_search",
    "similarity_search_panel",
    "validate_label_schemas",
}
"""Operators of FiftyOne's own that change only what is shown; those of other plugins are their owner's affair."""

_MUTATIONS = {
    "createSavedView",
    "searchSelectFields",
    "setColorScheme",
    "setDataset",
    "setFieldVisibilityStage",
    "setGroupSlice",
    "setLabelSelectionStyle",
    "setSample",
    "setSampleSelectionStyle",
    "setSelected",
    "setSelectedLabels",
    "setSelectedSamples",
    "setSidebarGroups",
    "setSpaces",
    "setView",
}
"""What a query may change: the session, and saved views of the reviewer's own."""
_DATASET_NAMES = {"dataset", "datasetName", "dataset_name"}
_DATASET_IDS = {"dataset_id", "datasetId"}
_MOST_QUERIES = 256

_CLASS = "_cls"
_CLASSES = re.compile(r"fiftyone\.core\.(stages|aggregations)\.[A-Z][A-Za-z]*|Space|Panel|Detections?")
"""What a request may name as a class: steps of a view, questions about one, the layout of a page, and boxes."""
_EXTENDED = {"extended", "extendedStages", "extended_stages"}
"""May hold classes as keys."""
_HARMFUL = {
    *("$accumulator", "$function", "$where", "$out", "$merge", "$graphLookup", "$lookup", "$unionWith"),
    *("$code", "$symbol"),
}
"""What runs a program in MongoDB, writes, or reads the collections of other datasets; and disguises of a text."""
_WRITTEN = "dist_field"
"""A field that a search for similar images would write."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not passed on: a sentence for the reviewer, and the HTTP status that it bears."""

    what: str
    hint: str = ""
    status: int = 403


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The dataset that a server shows: its name, its id in the database, and the saved view that it opens at."""

    name: str
    id: str
    view: str = ""


def refuse(method: str, path: str, reviewed: Reviewed) -> Refusal | None:
    """Return why a request may not pass, by method and decoded path alone; None where it may.

    An edit of a sample (PATCH) passes here; see `read_edit`.
    """
    if method in ("GET", "HEAD"):
        if path.startswith("/datasets/") and not re.fullmatch(_FILES, path):
            return None if path == f"/datasets/{reviewed.name}" else _other_dataset(reviewed)
        if path.startswith("/dataset/"):
            return None if path.split("/")[2] == reviewed.id else _other_dataset(reviewed)
        passes = _READ.fullmatch(path)
    elif method == "PATCH":
        passes = re.match(r"/dataset/[^/]+/sample/", path)
    else:
        passes = _POST.fullmatch(path) if method == "POST" else None
    return None if passes else Refusal("Not allowed by the server of a review", f"{method} {path[:80]}")


def refuse_body(path: str, body: bytes, reviewed: Reviewed) -> Refusal | None:
    """Return why the body of a POST may not pass: an operator that writes, another dataset, a lost saved view."""
    if not body:
        return None
    try:
        # As FiftyOne decodes it.
        asked = json.loads(body.decode(), object_pairs_hook=each_key_once)
    except (ValueError, RecursionError):
        return Refusal("The request is not JSON, or an object of it holds a key twice", status=400)
    if not isinstance(asked, dict):
        return Refusal("The request is not a JSON object", status=400)
    if (refusal := refuse_values(asked, reviewed)) is not None:
        return refusal
    if path.startswith(OPERATORS):
        operator = asked.get("operator_uri") or ""
        # FiftyOne makes a text of {"$symbol": …} too.
        if not isinstance(operator, str):
            return Refusal("The name of an operator must be a text", status=400)
        if operator.startswith(_BUILT_IN) and operator.rpartition("/")[2] not in _HARMLESS:
            return Refusal(
                "Operators that change the dataset or read the disk are not allowed in a review", operator[:80]
            )
    return _refuse_query(asked, reviewed) if path == GRAPHQL else None


def refuse_values(request: Any, reviewed: Reviewed) -> Refusal | None:
    """Return why a value may not pass, at whatever depth it stands; None where all may.

    FiftyOne imports the module of whatever class a request names, and makes an object of it.

    Parameters
    ----------
    request : object
        Plain values, as JSON has them. Texts that are JSON themselves are read too, as FiftyOne does.
    """
    waiting: list[Any] = [request]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            try:
                waiting.append(json.loads(value, object_pairs_hook=each_key_once))
            except RepeatedKeyError:
                return Refusal("A text of the request is JSON that holds a key twice", status=400)
            except (ValueError, RecursionError):
                continue
        elif isinstance(value, dict):
            if _HARMFUL & value.keys() or value.get(_WRITTEN) is not None:
                return Refusal("Views of a review run no program, write nothing and read no other dataset")
            if _CLASS in value and not _is_class(value[_CLASS]):
                return Refusal("A request names a class that a review does not need", ascii(value[_CLASS])[:80])
            for name in _EXTENDED & value.keys():
                classes = [key for key in value[name] if "." in key] if isinstance(value[name], dict) else []
                if not all(_is_class(key) for key in classes):
                    return Refusal("A request names a class that a review does not need", ascii(classes[0])[:80])
            for names, ours in ((_DATASET_NAMES, reviewed.name), (_DATASET_IDS, reviewed.id)):
                if any(isinstance(value[name], str) and value[name] not in ("", ours) for name in names & value.keys()):
                    return _other_dataset(reviewed)
            waiting += value.values()
    return None


@dataclass(frozen=True, slots=True)
class _Query:
    """A GraphQL query: what it changes, texts that stand in it, and the variables that name a dataset."""

    changes: frozenset[str]
    texts: frozenset[str]
    datasets: frozenset[str]


@lru_cache(_MOST_QUERIES)
def _read_query(text: str) -> _Query | None:
    """Return what a query does, None where it is none."""
    import graphql

    try:
        document = graphql.parse(text)
    except (graphql.GraphQLError, RecursionError):
        return None
    changes, texts, datasets = set(), set(), set()

    class Found(graphql.Visitor):
        def enter_operation_definition(self, node: Any, *_: Any) -> None:
            if node.operation != graphql.OperationType.QUERY:
                for selection in node.selection_set.selections:
                    changes.add(selection.name.value if isinstance(selection, graphql.FieldNode) else selection.kind)

        def enter_string_value(self, node: Any, *_: Any) -> None:
            texts.add(node.value)

        def enter_argument(self, node: Any, *_: Any) -> None:
            if node.name.value in {*_DATASET_NAMES, "name"} and isinstance(node.value, graphql.VariableNode):
                datasets.add(node.value.name.value)
            if node.name.value == _CLASS:
                # The App's own queries name classes in their variables, where they are checked.
                changes.add(_CLASS)

        enter_object_field = enter_argument

    graphql.visit(document, Found())
    return _Query(frozenset(changes), frozenset(texts), frozenset(datasets))


def _refuse_query(asked: Mapping[str, Any], reviewed: Reviewed) -> Refusal | None:
    text, variables = asked.get("query"), asked.get("variables") or {}
    query = _read_query(text) if isinstance(text, str) else None
    if query is None or not isinstance(variables, dict):
        return Refusal("The request is not a query", status=400)
    if query.changes - _MUTATIONS:
        return Refusal("The saved views and colours of a review cannot be changed")
    # A form is a variable that holds the name; the App's own queries hold no text.
    forms = [value for value in variables.values() if isinstance(value, dict)]
    named = [variables.get(name) for name in query.datasets]
    named += [form.get(name) for form in forms for name in _DATASET_NAMES]
    if {*query.texts, *(name for name in named if isinstance(name, str))} - {"", reviewed.name}:
        return _other_dataset(reviewed)
    return None


def _is_class(value: object) -> bool:
    return isinstance(value, str) and _CLASSES.fullmatch(value) is not None


def parameters(query: bytes) -> dict[str, list[str]]:
    """Return the parameters of an address as FiftyOne will read them."""
    return parse_qs(query.decode("latin-1"), keep_blank_values=True)


def restrict_stages(fiftyone: Any) -> None:
    """Let FiftyOne build, from what the App sends, stages of a view and nothing else, for the life of this process.

    By itself it makes an object of whatever class a request names, with the arguments that stand there, and hands
    MongoDB whatever pipeline a request holds: ``$out`` and ``$merge`` write. This holds whatever way the name took
    past `refuse_values`, in a saved view as well.
    """
    datasets = fiftyone.core.odm.get_db_conn().datasets
    for module, base in (
        (fiftyone.core.stages, fiftyone.core.stages.ViewStage),
        (fiftyone.core.aggregations, fiftyone.core.aggregations.Aggregation),
    ):
        make = base._from_dict.__func__
        if make.__module__ != __name__:
            base._from_dict = classmethod(_restricted(make, module, base, datasets))


def _restricted(make: Any, module: Any, base: type, datasets: Any) -> Any:
    def from_dict(cls: Any, request: Any) -> Any:
        where, _, name = str(request[_CLASS]).rpartition(".")
        kind = getattr(module, name, None) if where == module.__name__ else None
        if not (isinstance(kind, type) and issubclass(kind, base)):
            raise ValueError("not a stage of a view, nor an aggregation")
        if _is_harmful(request):
            raise ValueError("a view may not run a program, write, or read another dataset")
        # A stage may name the dataset that was generated for it; FiftyOne would take, and at times delete, any other.
        state = dict(request.get("kwargs") or ()).get("_state")
        generated = state.get("name") if isinstance(state, dict) else None
        stored = datasets.find_one({"name": str(generated)}, {"sample_collection_name": 1}) if generated else None
        if stored is not None and str(stored.get("sample_collection_name", "")).startswith("samples."):
            raise ValueError("a view may not read another dataset")
        return make(cls, request)

    return from_dict


def _is_harmful(request: Any) -> bool:
    waiting = [request]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            if _HARMFUL & value.keys():
                return True
            waiting += value.values()
        elif isinstance(value, list | tuple):
            # Arguments are pairs of a name and a value.
            if len(value) == 2 and value[0] == _WRITTEN and value[1] is not None:
                return True
            waiting += value
    return False


def _other_dataset(reviewed: Reviewed) -> Refusal:
    return Refusal(f"This server shows only the review {reviewed.name!r}", "start another server for another review")


_WHOLE = re.compile(r"/dataset/(?P<dataset>[^/]+)/sample/(?P<sample>[0-9a-f]{24})")
_LABEL = re.compile(_WHOLE.pattern + r"/(?P<field>[^/]+)/(?P<label>[^/]+)")
_PATCH_TYPE = "application/json-patch+json"
_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
PARTS_OF_A_BOX = ("_cls", "_id", "bounding_box", "confidence", "id", "index", "label", "tags")
"""What a drawn box may hold: nothing that names a file, as a mask may, and nothing that FiftyOne stores unchecked."""
# FiftyOne follows a path through attributes of Python objects, `__globals__` included.
_IN_A_BOX = rf"(/({'|'.join(PARTS_OF_A_BOX)})|/(bounding_box|tags)/[^/]+)?"
_PATH_IN_A_BOX = re.compile(_IN_A_BOX)
_PATH = re.compile(rf"/{MISSING}(/detections(/(-|[0-9]+){_IN_A_BOX})?)?")
_MOST_OPERATIONS = 1000


@dataclass(frozen=True, slots=True)
class EditRequest:
    """One edit of the field `MISSING` of one sample, before FiftyOne saw it.

    Attributes
    ----------
    sample : str
        Id of the sample.
    label : str
        Id of the one box that `operations` speak of, their paths being within it; ``""`` where they speak of the
        sample, their paths beginning with ``/missing``.
    version : str
        What the App last saw of the sample (``If-Match``, base64 of its time of change), ``""`` where it says nothing.
        FiftyOne refuses an edit of what has changed since with status 412.
    operations : tuple of mappings
        JSON Patch (RFC 6902): ``op``, ``path``, ``value`` or ``from``.
    """

    sample: str
    label: str
    version: str
    operations: tuple[Mapping[str, Any], ...]


_ELSEWHERE = Refusal(f"Only boxes of the field {MISSING!r} can be changed here", "verdicts are given by key or button")


class Edits(Protocol):
    """Who hears of every edit. Both calls are made outside the event loop, and never two at a time."""

    def begin(self, request: EditRequest) -> Refusal | int:
        """Take note of an edit before FiftyOne sees it; its number, or why it may not be made."""

    def end(self, number: int, status: int, body: bytes) -> None:
        """Take note of FiftyOne's answer: the edit is in the database where the status is below 300.

        Without this call nobody knows: the server ended in between. `body` is FiftyOne's answer, the sample as JSON
        where it went well.
        """


def read_edit(path: str, query: str, headers: Mapping[str, str], body: bytes, *, dataset: str) -> EditRequest | Refusal:
    """Return the edit that a PATCH request asks for, or why it may not pass.

    Parameters
    ----------
    path, query : str
        Decoded path of the request, and what follows its question mark.
    headers : mapping
        By lower-case name.
    dataset : str
        Id of the dataset under review.
    """
    found = _LABEL.fullmatch(path) or _WHOLE.fullmatch(path)
    if found is None or found["dataset"] != dataset:
        return Refusal("Not an image of this review")
    parts = found.groupdict()
    if query or parts.get("field", f"{MISSING}.detections") != f"{MISSING}.detections":
        return _ELSEWHERE
    if headers.get("content-type", "").partition(";")[0].strip().lower() != _PATCH_TYPE:
        return Refusal("An edit is a JSON Patch", f"Content-Type: {_PATCH_TYPE}", 415)
    try:
        operations = json.loads(body.decode(), object_pairs_hook=each_key_once)
    except (ValueError, RecursionError):
        operations = None
    if not isinstance(operations, list) or not 0 < len(operations) <= _MOST_OPERATIONS:
        return Refusal("The edit is not a list of JSON Patch operations", status=400)
    if (refusal := refuse_values(operations, Reviewed("", dataset))) is not None:
        return refusal
    label = parts.get("label", "")
    allowed = _PATH_IN_A_BOX if label else _PATH
    if not all(_is_operation(op, allowed) for op in operations):
        return _ELSEWHERE
    return EditRequest(parts["sample"], label, headers.get("if-match", "").strip('"'), tuple(operations))


def _is_operation(op: Any, allowed: re.Pattern[str]) -> bool:
    """Return whether this is an operation, and each path that it names one of a drawn box."""
    if not isinstance(op, dict) or op.get("op") not in _OPERATIONS or "path" not in op:
        return False
    return all(isinstance(op[name], str) and allowed.fullmatch(op[name]) for name in ("path", "from") if name in op)
