import errno
import os
import re
from types import SimpleNamespace
from typing import Any

import pytest

from curation.review.app.live_review import LiveReview, answered
from curation.review.decisions.decision import ACTIONS
from tests.review.app.database import PLUGIN

# FiftyOne's own use of its packages is not ours to mend.
pytestmark = [pytest.mark.mongo, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def execute(fiftyone: Any, review: LiveReview) -> Any:
    import fiftyone.operators as foo

    def run(name: str, selected: Any = (), /, **params: Any) -> dict[str, Any]:
        if name == "judge":
            # What a key asks the server of the review, which needs no operator.
            return answered(review.dataset, params)
        context = {"dataset": review.dataset, "selected": list(selected)}
        result = foo.execute_operator(f"@curation/review/{name}", ctx=context, params=params)
        assert result.error is None
        return result.result or {}

    return run


def chosen(review: LiveReview, count: int) -> list[str]:
    return list(review.dataset.values("id")[:count])


def test_without_a_name_nothing_is_recorded(execute: Any, review: LiveReview, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CURATION_REVIEWER")
    answer = execute("judge", ids=chosen(review, 1), verdict="near")
    assert answer["message"].startswith("A decision needs a reviewer. Stop it and restart it")
    assert not review.book.path.exists()


def test_a_key_records_and_tells_what_the_page_has_to_know(execute: Any, review: LiveReview) -> None:
    first, second = chosen(review, 2)
    assert execute("about") == {
        "reviewer": "anna",
        "verdicts": ["keep", "remove", "near", "far", "unsure"],
        "decided": [],
        "progress": "0 of 12",
        "latest": [],
        "guide": None,
    }
    done = execute("judge", ids=[first], verdict="near", reason="stripes")
    latest = [{"id": first, "image": review.dataset.values("image_id")[0], "verdict": "near", "reason": "stripes"}]
    assert done.pop("latest") == latest
    told = {"images": 1, "message": "1 image: near (stripes)", "ids": [first], "waiting": [], "progress": "1 of 12"}
    assert done == told
    assert execute("judge", ids=[first], verdict="near", reason="stripes")["message"] == "1 image: near already"
    execute("judge", ids=[second], verdict="far")
    assert execute("about")["decided"] == [first, second]
    assert [one["id"] for one in execute("about")["latest"]] == [second, first]
    undone = execute("judge", verdict="undo")
    assert (undone["ids"], undone["waiting"]) == ([second], [second])
    assert undone["progress"].startswith("1 of 12, about")


def test_the_way_through_the_enlarged_view_is_the_order_of_the_grid(fiftyone: Any, review: LiveReview) -> None:
    import fiftyone.operators as foo

    from curation.review.app.plugin import InOrder

    def ids(context: dict[str, Any], **params: Any) -> list[str]:
        found = foo.execute_operator("@curation/review/in_order", ctx=context, params=params)
        return list(found.result["ids"])

    dataset = review.dataset
    all_of_them = dataset.values("id")
    assert ids({"dataset": dataset}) == all_of_them
    assert ids({"dataset": dataset, "view": dataset.match({"batch": "0002"})}) == all_of_them[5:10]
    by_id = {"field": "image_id", "descending": True}
    assert ids({"dataset": dataset}, sort=by_id) == dataset.sort_by("image_id", reverse=True).values("id")
    assert ids({"dataset": dataset}, sort={"field": "no such field"}) == all_of_them
    # A saved view, with a filter of the sidebar on it.
    stages = dataset.load_saved_view("to decide")._serialize()
    batch = {"batch": {"values": ["0001"], "exclude": False, "isMatching": True}}
    asked = {"view_name": "to decide", "view": stages, "filters": batch}
    view = dataset.load_saved_view("to decide")
    context = SimpleNamespace(request_params=asked, view=view, dataset=dataset, params={})
    assert InOrder().execute(context)["ids"] == all_of_them[:5]


def test_a_full_disk_is_told_and_leaves_nothing(
    execute: Any, review: LiveReview, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    ids = chosen(review, 1)
    with monkeypatch.context() as patched:
        patched.setattr("curation.core.append_log._write_all", full)
        answer = execute("judge", ids=ids, verdict="near")
    assert answer["message"].startswith("Nothing was recorded: the log cannot be written. Free disk space")
    assert answer["found"] == "No space left on device"
    assert review.dataset.count_values("verdict") == {None: 12}
    assert execute("judge", ids=ids, verdict="near")["images"] == 1


def test_no_request_gives_a_verdict_in_another_name(execute: Any, review: LiveReview) -> None:
    for verdict in ("near", "undo"):
        answer = execute("judge", ids=chosen(review, 1), verdict=verdict, reviewer="ben")
        assert answer["message"].startswith("The reviewer is fixed when the server starts")
    assert not review.book.path.exists()


def test_the_app_is_handed_the_script(fiftyone: Any) -> None:
    import fiftyone.operators as foo

    found = {one.uri.rpartition("/")[2] for one in foo.list_operators(builtin=False)}
    declared = (PLUGIN / "fiftyone.yml").read_text()
    assert "js_bundle: review.js\n" in declared
    script = (PLUGIN / "review.js").read_text()
    listed = declared.partition("operators:")[2].replace("-", " ").split()
    assert listed == ["about", "in_order", *re.findall(r'OperatorConfig\(\{ name: "(\w+)"', script)]
    assert {*listed[:2]} <= found
    for stage, keys in (("manual", "IMAGE_KEYS"), ("pair", "PAIR_KEYS")):
        [declared] = re.findall(rf"const {keys} = (.*);", script)
        assert sorted(re.findall(r'\b[a-z]: "(\w+)"', declared)) == sorted(ACTIONS[stage])
