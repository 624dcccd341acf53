"""The guard by itself: what it refuses, what it answers, and that what goes wrong inside stays inside."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from curation.review.app.app_requests import JUDGE, Reviewed, refuse, refuse_body, restrict_stages
from curation.review.app.guard import Guard
from curation.review.app.live_review import LiveReview

SAMPLE = "5f00000000000000000000aa"
DATASET = "5f00000000000000000000dd"
EDIT = f"/dataset/{DATASET}/sample/{SAMPLE}"


def guarded(app: Any, *, judge: Any = None) -> Guard:
    return Guard(app, hosts={"127.0.0.1:1"}, port=1, reviewed=Reviewed("r", DATASET), files=frozenset, judge=judge)


async def ask(
    guard: Guard, method: str, path: str, body: bytes = b"", query: bytes = b"", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Ask as a browser with the token does; return status, headers and answer."""
    given = {"host": "127.0.0.1:1", "cookie": f"a=b; curation_review_1={guard.token}", **headers}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()],
        "http_version": "1.1",
        "scheme": "http",
        "server": ("127.0.0.1", 1),
        "client": ("127.0.0.1", 2),
        "root_path": "",
    }
    half = len(body) // 2
    waiting = [{"type": "http.request", "body": body[half:]}]
    waiting.append({"type": "http.request", "body": body[:half], "more_body": True})
    sent: list[Any] = []

    async def receive() -> Any:
        return waiting.pop() if waiting else await asyncio.sleep(3600)

    async def send(message: Any) -> None:
        sent.append(message)

    await guard(scope, receive, send)
    said = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], said, b"".join(one.get("body", b"") for one in sent[1:])


def answering(status: int = 200) -> Any:
    """An application that gives back what it was sent."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        headers = [(b"X-Frame-Options", b"ALLOWALL"), (b"etag", b"7")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


async def unasked(*_: object) -> None:
    raise AssertionError("FiftyOne was asked")


def test_a_key_is_answered_without_fiftyone() -> None:
    heard: list[Any] = []

    def judge(asked: Any) -> dict[str, Any]:
        heard.append(asked)
        return {"images": 1}

    guard = guarded(unasked, judge=judge)
    asked = {"dataset_name": "r", "ids": ["x"], "verdict": "near"}
    status, headers, body = asyncio.run(ask(guard, "POST", JUDGE, json.dumps(asked).encode()))
    assert (status, json.loads(body), heard) == (200, {"images": 1}, [asked])
    assert (headers["content-type"], headers["cache-control"]) == ("application/json", "no-store")
    another = json.dumps({**asked, "dataset_name": "another"}).encode()
    for method, data, more, refused in (
        ("GET", b"", {}, 403),
        ("POST", another, {}, 403),
        ("POST", b"[]", {}, 400),
        ("POST", b"{", {}, 400),
        ("POST", json.dumps(asked).encode(), {"cookie": ""}, 401),
        ("POST", json.dumps(asked).encode(), {"origin": "http://evil.example"}, 403),
    ):
        assert asyncio.run(ask(guard, method, JUDGE, data, **more))[0] == refused
    assert heard == [asked]
    assert asyncio.run(ask(guarded(unasked), "POST", JUDGE, json.dumps(asked).encode()))[0] == 403


def test_what_breaks_inside_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    async def breaks(*_: object) -> None:
        raise RuntimeError("secret")

    for app in (breaks, answering(500)):
        status, headers, body = asyncio.run(ask(guarded(app), "POST", "/values", b'{"secret": 1}'))
        assert (status, b"secret" in body, b"server failed" in body) == (500, False, True)
        assert headers["content-type"] == "application/json"
    assert "/values" in caplog.text


def test_a_link_from_elsewhere_leads_to_the_page_but_no_picture_is_drawn_elsewhere() -> None:
    guard = guarded(answering())

    def status(path: str, **fetch: str) -> int:
        return asyncio.run(ask(guard, "GET", path, **{f"sec_fetch_{k}": v for k, v in fetch.items()}))[0]

    assert status("/datasets/r", site="cross-site", mode="navigate") == 200
    assert status("/datasets/r", site="same-origin", mode="cors") == 200
    assert status("/datasets/r", site="same-site", mode="no-cors") == 403


def test_a_ticket_opens_the_app_once_and_a_page_leads_on_where_a_file_led_here() -> None:
    guard = guarded(answering())
    query, file = f"token={guard.ticket}".encode(), {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    status, headers, body = asyncio.run(ask(guard, "GET", "/", query=query, cookie="", **file))
    assert (status, "location" in headers) == (200, False)
    assert headers["set-cookie"] == f"curation_review_1={guard.token}; Path=/; HttpOnly; SameSite=Strict"
    assert b'content="0;url=/datasets/r"' in body
    assert guard.token.encode() not in body
    assert asyncio.run(ask(guard, "GET", "/", query=query, cookie="", **file))[0] == 401
    # An address is no mark-up of the page that leads to it.
    query = f"token={guard.token}&x=1".encode()
    _, _, body = asyncio.run(ask(guard, "GET", '/"><script>', query=query, cookie="", **file))
    assert b"<script" not in body
    assert b'url=/%22%3E%3Cscript%3E?x=1"' in body


PASSING = {
    *("GET /features", "GET /fiftyone", "GET /media", "GET /plugins"),
    *("GET /ontologies", "GET /ontologies/x/attributes", "GET /ontologies/x/taxonomy"),
    *(f"GET /dataset/{DATASET}/sample/x/{one}" for one in ("intrinsics", "static_transforms", "tags")),
    *(f"GET /dataset/{DATASET}/sample/x/group/{one}" for one in ("intrinsics", "static_transforms")),
    *(f"GET /dataset/{DATASET}/{one}" for one in ("groups/x", "groups/x/slices/x", "tags", "tags/counts")),
    *(f"POST /embeddings/{one}" for one in ("plot", "selection", "extended-stage", "color-by-choices")),
    *(f"POST /embeddings/v2/{one}" for one in ("runs-status", "run-info", "geometry", "ids", "color", "masks")),
    *("POST /embeddings/v2/lasso-stage", "POST /embeddings/v2/sample-info"),
    *("POST /operators", "POST /operators/execute", "POST /operators/execute/generator"),
    *(f"POST /operators/{one}" for one in ("resolve-type", "resolve-placements", "resolve-execution-options")),
    "POST /operators/subscribe-execution-store",
    *(f"POST /{one}" for one in ("aggregate", "event", "events", "geo", "sort", "tagging", "values")),
}
"""Routes of FiftyOne that a review answers."""
CLOSED = {
    *("DELETE", "OPTIONS", "PATCH", "PUT"),
    *("/frames", "/get-similar-labels-frames", "/runtime-assets", "/screenshot", "/tag", "/video-labels"),
    *(f"POST /dataset/{DATASET}/sample/x/{one}" for one in ("commit-mask", "tags")),
}


@pytest.mark.mongo
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_route_and_mutation_of_fiftyone_is_decided(fiftyone: Any) -> None:
    app = pytest.importorskip("fiftyone.server.app")
    reviewed, passing = Reviewed("r", DATASET), set()
    for route, endpoint in app.routes:
        path = re.sub(r"\{[^}]*\}", "x", route.replace("{dataset_id}", DATASET))
        for method in ("get", "post", "put", "patch", "delete", "options"):
            if hasattr(endpoint, method) and refuse(method.upper(), path, reviewed) is None:
                passing.add(f"{method.upper()} {path}")
            elif hasattr(endpoint, method):
                asked = f"{method.upper()} {path}"
                assert any(part in asked for part in CLOSED), f"a new route of FiftyOne: {asked}"
    assert passing == PASSING
    mutations = set(app.schema._schema.mutation_type.fields)
    refused = {"deleteSavedView", "setDatasetColorScheme", "updateSavedView"}
    for name in mutations:
        query = json.dumps({"query": f"mutation{{{name}}}"}).encode()
        assert (refuse_body("/graphql", query, reviewed) is None) == (name not in refused)


@pytest.mark.mongo
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_a_request_names_past_the_guard_is_no_class_and_no_program(
    fiftyone: Any, review: LiveReview, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages, aggregations = fiftyone.core.stages, fiftyone.core.aggregations
    bases = (stages.ViewStage, aggregations.Aggregation)
    for base in bases:
        monkeypatch.setattr(base, "_from_dict", base.__dict__["_from_dict"])
    restrict_stages(fiftyone)
    touch = [["args", ["touch", str(tmp_path / "made")]]]
    other = {"name": review.dataset.name, "stages": []}
    refused = (
        {"_cls": "subprocess.Popen", "kwargs": touch},
        {"_cls": "fiftyone.core.stages.etau", "kwargs": []},
        {"_cls": "fiftyone.core.stages.ViewStageError", "kwargs": []},
        {"_cls": "fiftyone.core.stages.Mongo", "kwargs": [["pipeline", [{"$out": "x"}]]]},
        {"_cls": "fiftyone.core.stages.Mongo", "kwargs": [["pipeline", [{"$facet": {"x": [{"$lookup": {}}]}}]]]},
        {"_cls": "fiftyone.core.stages.Match", "kwargs": [["filter", {"$where": "1"}]]},
        {"_cls": "fiftyone.core.stages.ToPatches", "kwargs": [["field", "known"], ["_state", other]]},
        {"_cls": "fiftyone.core.stages.SortBySimilarity", "kwargs": [["query", "x"], ["dist_field", "verdict"]]},
        {"_cls": "fiftyone.core.aggregations.Values", "kwargs": [["field_or_expr", {"$function": {}}]]},
    )
    for request in refused:
        for base in bases:
            with pytest.raises(ValueError, match=r"not a stage|may not"):
                base._from_dict(request)
    nested = {"_cls": "fiftyone.core.stages.Flatten", "kwargs": [["stages", [refused[0]]]]}
    with pytest.raises(ValueError, match="not a stage"):
        stages.ViewStage._from_dict(nested)
    assert not (tmp_path / "made").exists()
    patches = review.dataset.to_patches("known").limit(3)
    for made in patches._serialize():
        stages.ViewStage._from_dict(made)
    counted = aggregations.Count("batch")._serialize()
    assert review.dataset.aggregate(aggregations.Aggregation._from_dict(counted)) == len(review.dataset)
