import errno
import os
import re
from types import SimpleNamespace
from typing import Any

import pytest

from curation.review.app.live_review import LiveReview, answered
from curation.review.app.progress import progress_markdown
from curation.review.app.verdicts import UNDO
from curation.review.decisions.files import read_decisions
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


def test_fiftyone_finds_every_operator_and_the_panel(fiftyone: Any) -> None:
    import fiftyone.operators as foo
    import fiftyone.plugins as fop

    assert "@curation/review" in [one.name for one in fop.list_plugins()]
    found = {one.uri.rpartition("/")[2] for one in foo.list_operators(builtin=False)}
    assert {"keep", "remove", "near", "far", "unsure", "undo", "next_batch"} <= found
    assert {"review_panel", "open_review"} <= found


BUTTONS = {"keep": "keep", "remove": "remove", "near": "to_near", "far": "to_far", "unsure": "unsure"}


def test_each_verdict_has_a_button_of_its_own(execute: Any, review: LiveReview) -> None:
    for verdict in BUTTONS:
        assert execute(verdict, chosen(review, 2))["message"] == f"2 images: {verdict}"
    rows = read_decisions(review.book.path).decisions
    # The reviewer is the one named when the App was started.
    assert [(row.action, row.reviewer) for row in rows] == [(one, "anna") for one in BUTTONS.values() for _ in range(2)]


def test_nothing_selected_is_told_and_not_recorded(execute: Any, review: LiveReview) -> None:
    result = execute("near", [])
    assert result["images"] == 0
    assert result["message"].startswith("No image is selected. Tick images in the grid")
    assert not review.book.path.exists()


def test_undo_and_next_batch(execute: Any, review: LiveReview) -> None:
    execute("near", chosen(review, 5))
    assert execute("next_batch")["batch"] == "0002"
    execute("far", chosen(review, 1))
    assert execute("undo")["message"] == "Undone: 1 image"


def test_progress_by_batch_and_reviewer(execute: Any, review: LiveReview, monkeypatch: pytest.MonkeyPatch) -> None:
    execute("near", chosen(review, 5))
    monkeypatch.setenv("CURATION_REVIEWER", "ben_x_*")
    execute("near", chosen(review, 2))
    progress = review.progress()
    assert progress.decided == 5
    assert "**5** of 12 images decided (41 %)" in progress_markdown(progress)
    # A reviewer's name is text, whatever Markdown makes of it.
    assert r"ben\_x\_\*" in progress_markdown(progress)


@pytest.fixture
def press(fiftyone: Any, review: LiveReview) -> Any:
    """Press a button of the panel."""
    import fiftyone.operators as foo

    def pressed(method: str, selected: Any = (), verdict: str = "", **state: Any) -> dict[str, Any]:
        result = foo.execute_operator(
            "@curation/review/review_panel",
            ctx={"dataset": review.dataset, "selected": list(selected), "panel_state": state, "panel_id": "p"},
            params={"__method__": method, "panel_id": "p", "panel_state": state, "verdict": verdict},
        )
        assert result.error is None
        return result.to_json()

    return pressed


def test_the_panel_decides_on_what_is_selected(press: Any, review: LiveReview) -> None:
    press("on_verdict", verdict="near")
    press("on_verdict", chosen(review, 2), verdict="maybe")
    assert not review.book.path.exists()
    press("on_verdict", chosen(review, 2), verdict="near", reason="stripes")
    rows = read_decisions(review.book.path).decisions
    assert {(row.action, row.reviewer, row.reason) for row in rows} == {("to_near", "anna", "stripes")}
    press("on_undo")
    press("on_next")
    press("on_export")
    assert (review.book.path.parent / "export.jsonl").read_bytes() == b""


def test_every_way_to_judge_writes_the_name_of_the_server(
    execute: Any, press: Any, review: LiveReview, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CURATION_REVIEWER", "eva")
    ids = chosen(review, 12)
    execute("judge", ids=ids[:1], verdict="near")
    for place, word in enumerate(("keep", "remove", "near", "far", "unsure"), 2):
        execute(word, ids[place : place + 1])
    # A name that an old page still holds in its panel is no name.
    for place, word in enumerate(("keep", "remove", "near", "far", "unsure"), 7):
        press("on_verdict", ids[place : place + 1], verdict=word, reviewer="ben")
    execute("undo")
    press("on_undo")
    execute("judge", verdict="undo")
    rows = read_decisions(review.book.path).decisions
    assert len(rows) == 14
    assert {row.reviewer for row in rows} == {"eva"}


def test_no_request_gives_a_verdict_in_another_name(
    execute: Any, review: LiveReview, subtests: pytest.Subtests
) -> None:
    (one,) = chosen(review, 1)
    for name in ("judge", "near", "undo", "next_batch"):
        with subtests.test(name=name):
            answer = execute(name, [one], ids=[one], verdict="near", reviewer="ben")
            assert answer["message"].startswith("The reviewer is fixed when the server starts")
            assert not review.book.path.exists()


def test_without_a_name_nothing_is_recorded(execute: Any, review: LiveReview, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CURATION_REVIEWER")
    answer = execute("judge", ids=chosen(review, 1), verdict="near")
    assert answer["message"].startswith("A verdict needs a reviewer. Stop it and restart it")
    assert not review.book.path.exists()


def test_a_key_records_and_tells_what_the_page_has_to_know(execute: Any, review: LiveReview) -> None:
    first, second = chosen(review, 2)
    assert execute("about") == {
        "reviewer": "anna",
        "verdicts": ["keep", "remove", "near", "far", "unsure"],
        "decided": [],
        "progress": "0 of 12",
    }
    done = execute("judge", ids=[first], verdict="near")
    assert done == {"images": 1, "message": "1 image: near", "ids": [first], "waiting": [], "progress": "1 of 12"}
    assert execute("judge", ids=[first], verdict="near")["message"] == "1 image: near already"
    execute("judge", ids=[second], verdict="far")
    assert execute("about")["decided"] == [first, second]
    undone = execute("judge", verdict="undo")
    assert (undone["ids"], undone["waiting"], undone["progress"]) == ([second], [second], "1 of 12")


def test_the_way_through_the_enlarged_view_is_the_order_of_the_grid(fiftyone: Any, review: LiveReview) -> None:
    import fiftyone.operators as foo

    from curation.review.app.plugin.operators import InOrder

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


NO_REQUESTS: list[tuple[Any, Any]] = [
    (None, "near"), ([], "near"), (["x"], "near"), ("all", "near"), ([[]], "near"), (None, None)
]  # fmt: skip


def test_what_is_no_request_of_the_page_is_refused(execute: Any, review: LiveReview, subtests: pytest.Subtests) -> None:
    for ids, verdict in NO_REQUESTS:
        with subtests.test(ids=ids, verdict=verdict):
            assert execute("judge", ids=ids, verdict=verdict)["error"] == "ReviewError"
            assert not review.book.path.exists()


def test_a_full_disk_is_told_and_leaves_nothing(
    execute: Any, review: LiveReview, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    ids = chosen(review, 1)
    with monkeypatch.context() as patched:
        patched.setattr("curation.core.append_log._write_all", full)
        answer = execute("judge", ids=ids, verdict="near")
    assert answer["message"].startswith("Nothing was recorded: the log cannot be written. Free some disk space")
    assert answer["found"] == "No space left on device"
    assert review.dataset.count_values("verdict") == {None: 12}
    assert execute("judge", ids=ids, verdict="near")["images"] == 1


def test_the_grid_is_reloaded_where_it_stands(fiftyone: Any, review: LiveReview) -> None:
    """Reloading the dataset would show the first image again after every verdict."""
    import fiftyone.operators as foo

    context = {"dataset": review.dataset, "selected": chosen(review, 1)}
    result = foo.execute_operator("@curation/review/near", ctx=context)
    asked = [one["operator_uri"].rpartition("/")[2] for one in result.to_json()["executor"]["requests"]]
    assert asked == ["notify", "clear_selected_samples", "shown", "reload_samples"]


def test_the_app_is_handed_the_script() -> None:
    declared = (PLUGIN / "fiftyone.yml").read_text()
    pytest.importorskip("fiftyone")
    from curation.review.app.plugin.operators import KEYS, OPERATORS

    assert "js_bundle: review.js\n" in declared
    script = (PLUGIN / "review.js").read_text()
    listed = declared.partition("operators:")[2].partition("panels:")[0].replace("-", " ").split()
    ours = [one.called for one in OPERATORS]
    assert listed[: len(ours)] == ours
    assert listed[len(ours) :] == re.findall(r'OperatorConfig\(\{ name: "(\w+)"', script)
    assert dict(re.findall(r'\b([a-z]): "(keep|remove|near|far|unsure)"', script)) == {
        key: word for word, key in KEYS.items() if word != UNDO
    }


def test_another_dataset_is_told_that_it_is_no_review(fiftyone: Any) -> None:
    import fiftyone.operators as foo

    dataset = fiftyone.Dataset()
    for name in ("near", "undo", "next_batch"):
        result = foo.execute_operator(
            f"@curation/review/{name}", ctx={"dataset": dataset, "selected": ["x"]}, params={"reviewer": "anna"}
        )
        assert result.result["message"].startswith("This dataset is not a review")
