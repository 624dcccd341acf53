"""The requests that the server of a review accepts: those that show images or record decisions in the log.

FiftyOne's server can do more than a review needs: change any field, tag or saved view, run every operator of every
plugin, list folders, load other datasets. Every request that is not listed here is refused, also in later releases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from curation.core.json_text import RepeatedKeyError, each_key_once

MEDIA = "/media"
GRAPHQL = "/graphql"
OPERATORS = "/operators"
JUDGE = "/review/judge"
"""Address of a decision by key, which the server of the review answers itself (`curation.review.app.live_review`)."""

_FILES = r"/(datasets/)?(assets/.+|index\.html|favicon\.ico|[a-z_]+\.svg)"
"""Files of FiftyOne's page; a page of a dataset may request them below its own address."""
_ASSETS = r"/plugins/.+\.(js|mjs|css|map|json|svg|png|wasm|woff2?)"
"""Files of a plugin's page; its Python files are never served."""

_READ = re.compile(rf"/|/fiftyone|/features|{MEDIA}|/plugins|/ontologies(/.+)?|{_FILES}|{_ASSETS}")
_POST = re.compile(
    rf"{JUDGE}|{GRAPHQL}|{OPERATORS}(/execute(/generator)?|/resolve-(type|placements|execution-options)"
    r"|/subscribe-execution-store)?"
    r"|/aggregate|/events?|/sort|/tagging|/values|/geo|/embeddings/.+"
)
"""Queries, and changes of what the session of this server selects or shows."""

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
"""Built-in operators that change only what is shown. Operators of other plugins are not restricted here."""

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
"""Allowed mutations: of the session, and new saved views of the reviewer."""
_DATASET_NAMES = {"dataset", "datasetName", "dataset_name"}
_DATASET_IDS = {"dataset_id", "datasetId"}
_MOST_QUERIES = 256

_CLASS = "_cls"
_CLASSES = re.compile(r"fiftyone\.core\.(stages|aggregations)\.[A-Z][A-Za-z]*|Space|Panel")
"""Classes that a request may name: stages of a view, aggregations, and the layout of a page."""
_EXTENDED = {"extended", "extendedStages", "extended_stages"}
"""Names of values whose keys may be classes."""
_HARMFUL = {
    *("$accumulator", "$function", "$where", "$out", "$merge", "$graphLookup", "$lookup", "$unionWith"),
    *("$code", "$symbol"),
}
"""Keys that run a program in MongoDB, write, read collections of other datasets, or disguise a text."""
_WRITTEN = "dist_field"
"""Field that a search for similar images would write to."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused: a sentence for the reviewer, and the HTTP status."""

    what: str
    hint: str = ""
    status: int = 403


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The dataset that a server shows: its name, its id in the database, and the saved view that opens first."""

    name: str
    id: str
    view: str = ""


_NO_EDITS = Refusal(
    "A review changes no annotations",
    "correct boxes in a FiftyOne of your own, export them as COCO JSON, and give that file as --source",
)
"""Refusal of changed boxes: in Annotate mode the App saves each change by a PATCH of its sample."""


def refuse(method: str, path: str, reviewed: Reviewed) -> Refusal | None:
    """Return why a request is refused for its method or decoded path, or None."""
    if method in ("GET", "HEAD"):
        if path.startswith("/datasets/") and not re.fullmatch(_FILES, path):
            return None if path == f"/datasets/{reviewed.name}" else _other_dataset(reviewed)
        if path.startswith("/dataset/"):
            return None if path.split("/")[2] == reviewed.id else _other_dataset(reviewed)
        passes = _READ.fullmatch(path)
    elif method == "PATCH" and path.startswith("/dataset/"):
        return _NO_EDITS
    else:
        passes = _POST.fullmatch(path) if method == "POST" else None
    return None if passes else Refusal("Not allowed by the server of a review", f"{method} {path[:80]}")


def refuse_body(path: str, body: bytes, reviewed: Reviewed) -> Refusal | None:
    """Return why the body of a POST is refused (an operator that writes, another dataset), or None."""
    if not body:
        return None
    try:
        # As FiftyOne decodes it.
        request = json.loads(body.decode(), object_pairs_hook=each_key_once)
    except (ValueError, RecursionError):
        return Refusal("The request is not JSON, or an object has a duplicate key", status=400)
    if not isinstance(request, dict):
        return Refusal("The request is not a JSON object", status=400)
    if (refusal := refuse_values(request, reviewed)) is not None:
        return refusal
    if path.startswith(OPERATORS):
        operator = request.get("operator_uri") or ""
        # FiftyOne converts {"$symbol": …} to a text too.
        if not isinstance(operator, str):
            return Refusal("The name of an operator must be a text", status=400)
        if operator.startswith(_BUILT_IN) and operator.rpartition("/")[2] not in _HARMLESS:
            return Refusal(
                "Operators that change the dataset or read the disk are not allowed in a review", operator[:80]
            )
    return _refuse_query(request, reviewed) if path == GRAPHQL else None


def refuse_values(request: Any, reviewed: Reviewed) -> Refusal | None:
    """Return why a value at any depth of a request is refused, or None.

    FiftyOne imports the module of any class that a request names, and makes an object of the class.

    Parameters
    ----------
    request : object
        Plain values of JSON. Texts that are JSON themselves are read too, as FiftyOne does.
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
                return Refusal("A text of the request is JSON with a duplicate key", status=400)
            except (ValueError, RecursionError):
                continue
        elif isinstance(value, dict):
            if _HARMFUL & value.keys() or value.get(_WRITTEN) is not None:
                return Refusal("A view in a review may not run a program, write, or read another dataset")
            classes = [value[_CLASS]] if _CLASS in value else []
            for extended in (value[name] for name in _EXTENDED & value.keys() if isinstance(value[name], dict)):
                classes += [key for key in extended if "." in key]
            if foreign := [name for name in classes if not (isinstance(name, str) and _CLASSES.fullmatch(name))]:
                return Refusal("A request names a class that a review does not need", ascii(foreign[0])[:80])
            for names, ours in ((_DATASET_NAMES, reviewed.name), (_DATASET_IDS, reviewed.id)):
                if any(isinstance(value[name], str) and value[name] not in ("", ours) for name in names & value.keys()):
                    return _other_dataset(reviewed)
            waiting += value.values()
    return None


@dataclass(frozen=True, slots=True)
class _Query:
    """A GraphQL query: what it changes, the texts in it, and the variables that name a dataset."""

    changes: frozenset[str]
    texts: frozenset[str]
    datasets: frozenset[str]


@lru_cache(_MOST_QUERIES)
def _read_query(text: str) -> _Query | None:
    """Return the content of a query, or None if the text is not a query."""
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
                # The App's own queries name classes only in their variables, which `refuse_values` checks.
                changes.add(_CLASS)

        enter_object_field = enter_argument

    graphql.visit(document, Found())
    return _Query(frozenset(changes), frozenset(texts), frozenset(datasets))


def _refuse_query(request: Mapping[str, Any], reviewed: Reviewed) -> Refusal | None:
    text, variables = request.get("query"), request.get("variables") or {}
    query = _read_query(text) if isinstance(text, str) else None
    if query is None or not isinstance(variables, dict):
        return Refusal("The request is not a query", status=400)
    if query.changes - _MUTATIONS:
        return Refusal("The saved views and colours of a review cannot be changed")
    # A variable may be a form that contains the name; the App's own queries contain no texts.
    forms = [value for value in variables.values() if isinstance(value, dict)]
    names = [variables.get(name) for name in query.datasets]
    names += [form.get(name) for form in forms for name in _DATASET_NAMES]
    if {*query.texts, *(name for name in names if isinstance(name, str))} - {"", reviewed.name}:
        return _other_dataset(reviewed)
    return None


def parameters(query: bytes) -> dict[str, list[str]]:
    """Return the parameters of an address as FiftyOne will read them."""
    return parse_qs(query.decode("latin-1"), keep_blank_values=True)


def restrict_stages(fiftyone: Any) -> None:
    """Restrict the objects that FiftyOne makes from requests to stages and aggregations, for the life of this process.

    FiftyOne makes an object of any class that a request names, and passes any pipeline to MongoDB, where ``$out`` and
    ``$merge`` write. The restriction also applies to saved views, and to names that pass `refuse_values`.
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
        # A stage may name its own generated dataset only: FiftyOne would use, and at times delete, any other dataset.
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
            # Arguments are pairs of name and value.
            if len(value) == 2 and value[0] == _WRITTEN and value[1] is not None:
                return True
            waiting += value
    return False


def _other_dataset(reviewed: Reviewed) -> Refusal:
    return Refusal(f"This server shows only the review {reviewed.name!r}", "start another server for another review")
