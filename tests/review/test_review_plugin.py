from pathlib import Path
from typing import Any

import pytest

from curation.decisions.files import read_decisions
from curation.review.live_review import LiveReview
from tests.review.review_world import coco_id

# FiftyOne's own use of its packages is not ours to mend.
pytestmark = [pytest.mark.mongo, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def execute(fiftyone: Any, review: LiveReview) -> Any:
    import fiftyone.operators as foo

    def run(name: str, selected: Any = (), /, **params: Any) -> dict[str, Any]:
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
    assert {"decide", "keep", "remove", "near", "far", "unsure", "undo", "next_batch"} <= found
    assert {"export_decisions", "review_progress", "review_panel", "open_review"} <= found


def test_decide_records_verdict_reason_and_reviewer(execute: Any, review: LiveReview) -> None:
    result = execute("decide", chosen(review, 3), verdict="remove", reason="a person", reviewer="ben")
    assert result["images"] == 3
    rows = read_decisions(review.book.path).decisions
    assert {(row.action, row.reason, row.reviewer) for row in rows} == {("remove", "a person", "ben")}
    assert [row.image_id for row in rows] == [coco_id(n) for n in (12, 11, 10)]


@pytest.mark.parametrize(
    ("verdict", "action"),
    [("keep", "keep"), ("remove", "remove"), ("near", "to_near"), ("far", "to_far"), ("unsure", "unsure")],
)
def test_each_verdict_has_a_button_of_its_own(execute: Any, review: LiveReview, verdict: str, action: str) -> None:
    assert execute(verdict, chosen(review, 2))["message"] == f"2 images: {verdict}"
    rows = read_decisions(review.book.path).decisions
    # The reviewer is the one named when the App was started.
    assert {(row.action, row.reviewer) for row in rows} == {(action, "anna")}


def test_nothing_selected_is_told_and_not_recorded(execute: Any, review: LiveReview) -> None:
    result = execute("near", [])
    assert result["images"] == 0
    assert result["message"].startswith("No image is selected. Tick images in the grid")
    assert not review.book.path.exists()


def test_the_form_of_decide_does_not_open_on_nothing(execute: Any, review: LiveReview) -> None:
    with pytest.raises(Exception, match="No image is selected"):
        execute("decide", [], verdict="near", reviewer="anna")


def test_a_verdict_that_is_none_is_refused(execute: Any, review: LiveReview) -> None:
    with pytest.raises(Exception, match="Validation error"):
        execute("decide", chosen(review, 1), verdict="maybe", reviewer="anna")
    assert not review.book.path.exists()


def test_selected_patches_are_no_images(execute: Any, review: LiveReview) -> None:
    boxes = [box.id for box in review.dataset.first().other.detections]
    assert "no images of this review" in execute("near", boxes)["message"]


def test_undo_next_batch_and_export(execute: Any, review: LiveReview) -> None:
    execute("near", chosen(review, 5))
    assert execute("next_batch")["batch"] == "0002"
    execute("far", chosen(review, 1))
    assert execute("undo")["message"] == "Undone: 1 image"
    path = Path(execute("export_decisions", name="out.csv")["path"])
    assert path.parent == review.book.path.parent
    assert {row.action for row in read_decisions(path).decisions} == {"to_near"}
    assert "plain file name" in execute("export_decisions", name="../out.csv")["message"]


def test_progress_by_batch_and_reviewer(execute: Any, review: LiveReview) -> None:
    execute("near", chosen(review, 5))
    execute("decide", chosen(review, 2), verdict="near", reviewer="ben_x_*")
    result = execute("review_progress")
    assert result["progress"]["decided"] == 5
    assert "**5** of 12 images decided (41 %)" in result["text"]
    # A reviewer's name is text, whatever Markdown makes of it.
    assert r"ben\_x\_\*" in result["text"]


def test_the_panel_decides_on_what_is_selected(fiftyone: Any, review: LiveReview) -> None:
    import fiftyone.operators as foo

    def press(method: str, selected: list[str], **state: Any) -> None:
        foo.execute_operator(
            "@curation/review/review_panel",
            ctx={"dataset": review.dataset, "selected": selected, "panel_state": state, "panel_id": "p"},
            params={"__method__": method, "panel_id": "p", "panel_state": state},
        )

    press("on_load", [])
    press("on_near", [], reviewer="ben")
    assert not review.book.path.exists()
    press("on_near", chosen(review, 2), reviewer="ben", reason="stripes")
    rows = read_decisions(review.book.path).decisions
    assert {(row.action, row.reviewer, row.reason) for row in rows} == {("to_near", "ben", "stripes")}
    press("on_undo", [], reviewer="ben")
    press("on_next", [], reviewer="ben")
    press("on_export", [], reviewer="ben")
    assert (review.book.path.parent / "export.jsonl").read_bytes() == b""


def test_another_dataset_is_told_that_it_is_no_review(fiftyone: Any) -> None:
    import fiftyone.operators as foo

    dataset = fiftyone.Dataset()
    for name in ("near", "undo", "next_batch", "export_decisions", "review_progress"):
        result = foo.execute_operator(
            f"@curation/review/{name}",
            ctx={"dataset": dataset, "selected": ["x"]},
            params={"name": "a.csv", "reviewer": "anna"},
        )
        assert result.result["message"].startswith("This dataset is no review")
