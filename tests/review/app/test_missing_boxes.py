"""Drawn boxes: the log is written first, tells the truth after a kill, and a start brings the database up to it.

Of a real server see `tests.review.app.test_serving`.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from curation.review.app.app_requests import EditRequest, Refusal
from curation.review.app.dataset import BOXED_FIELD, MISSING
from curation.review.app.live_review import LiveReview
from curation.review.app.missing_boxes import BOXES_FILE, MissingBoxes
from curation.review.app.session import start_review
from curation.review.decisions.box_edits import BoxState, read_box_log
from tests.review.app.review_world import HEIGHT, WIDTH, ReviewWorld, coco_id, write_world

# FiftyOne's own use of its packages is not ours to mend.
pytestmark = [pytest.mark.mongo, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
ID = "0123456789abcdef01234567"
OTHER = "fedcba9876543210fedcba98"
SHARES = [0.25, 0.5, 0.125, 0.25]
PIXELS = ("24", "32", "12", "16")


def drawn(label: str = "unknown", box: list[float] = SHARES, number: str = ID, **more: Any) -> dict[str, Any]:
    """Return a box as the App sends it."""
    return {"_id": number, "_cls": "Detection", "label": label, "bounding_box": box, "tags": [], **more}


class Table:
    """A review dataset, its drawn boxes, and FiftyOne's part: what it writes into the database."""

    def __init__(self, review: LiveReview) -> None:
        self.dataset = review.dataset
        self.path = review.book.path.with_name(BOXES_FILE)
        self.boxes = self.open("anna")
        self.sample = str(self.dataset.match({"image_id": coco_id(1)}).first().id)

    def open(self, reviewer: str) -> MissingBoxes:
        """Return what a new process would have."""
        return MissingBoxes(self.dataset, self.path, reviewer)

    def request(self, *operations: dict[str, Any], label: str = "") -> EditRequest:
        return EditRequest(self.sample, label, "", operations)

    def add(self, box: dict[str, Any] | None = None) -> EditRequest:
        return self.request({"op": "add", "path": "/missing/detections/-", "value": box or drawn()})

    def write(self, *boxes: dict[str, Any]) -> None:
        """Store boxes as FiftyOne does."""
        from bson import ObjectId

        listed = [{**one, "_id": ObjectId(one["_id"])} for one in boxes]
        self.dataset._sample_collection.update_one(
            {"_id": ObjectId(self.sample)}, {"$set": {MISSING: {"_cls": "Detections", "detections": listed}}}
        )

    def stored(self) -> list[tuple[str, str, list[float]]]:
        from bson import ObjectId

        found = self.dataset._sample_collection.find_one({"_id": ObjectId(self.sample)})
        boxes = (found.get(MISSING) or {}).get("detections") or []
        return [(str(one["_id"]), one["label"], one["bounding_box"]) for one in boxes]

    def boxed(self) -> list[str]:
        from bson import ObjectId

        found = self.dataset._sample_collection.find_one({"_id": ObjectId(self.sample)})
        return list(found.get(BOXED_FIELD) or [])

    def rows(self) -> list[tuple[str, str, str]]:
        return [(one.row, one.operation or one.outcome, one.reviewer) for one in read_box_log(self.path).rows]

    def standing(self, reviewer: str = "anna") -> list[BoxState]:
        return list(self.boxes.log.read().boxes.get((coco_id(1), reviewer), {}).values())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ReviewWorld:
    return write_world(tmp_path_factory.mktemp("drawn") / "world")


@pytest.fixture(scope="module")
def drawn_on(fiftyone: Any, world: ReviewWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveReview]:
    """One review for all tests: each begins with no box and no log."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        review = start_review(tmp_path_factory.mktemp("drawn") / "review", "drawn-boxes", world.images()).review
    yield review
    fiftyone.delete_dataset("drawn-boxes")


@pytest.fixture
def table(drawn_on: LiveReview) -> Iterator[Table]:
    made = Table(drawn_on)
    yield made
    made.path.unlink(missing_ok=True)
    made.dataset._sample_collection.update_many({}, {"$set": {MISSING: None, BOXED_FIELD: []}})
    made.dataset.reload()


def begun(found: Refusal | int) -> int:
    assert isinstance(found, int), found
    return found


def refused(found: Refusal | int) -> Refusal:
    assert isinstance(found, Refusal)
    return found


def test_an_edit_is_in_the_log_before_the_database_and_its_outcome_after(table: Table) -> None:
    number = begun(table.boxes.begin(table.add()))
    row = read_box_log(table.path).rows[0]
    assert (row.number, row.reviewer, row.image_id, row.box_id) == (number, "anna", coco_id(1), ID)
    assert row.after == BoxState(box=PIXELS, label="unknown")
    assert (row.before, row.size) == (None, (WIDTH, HEIGHT))
    assert table.stored() == []
    table.write(drawn())
    table.boxes.end(number, 200, b"")
    assert table.rows() == [("edit", "add", "anna"), ("outcome", "applied", "anna")]
    assert table.standing() == [BoxState(box=PIXELS, label="unknown")]


def test_every_way_of_the_app_to_change_a_box(table: Table) -> None:
    table.boxes.end(begun(table.boxes.begin(table.add())), 200)
    for request, operation in (
        (table.request({"op": "replace", "path": "/bounding_box", "value": [0.5, 0.5, 0.25, 0.25]}, label=ID), "move"),
        (table.request({"op": "replace", "path": "/missing/detections/0/bounding_box/0", "value": 0.25}), "move"),
        (table.request({"op": "replace", "path": "/label", "value": "zebra"}, label=ID), "relabel"),
        (table.request({"op": "add", "path": "/tags/-", "value": "seen"}, label=ID), ""),
        (table.request({"op": "remove", "path": ""}, label=ID), "remove"),
        (table.request({"op": "add", "path": "/missing", "value": {"detections": [drawn(number=OTHER)]}}), "add"),
        (table.request({"op": "remove", "path": "/missing/detections/0"}), "remove"),
    ):
        before = len(table.rows())
        # FiftyOne's answer is not awaited: the database is brought up to the log.
        table.boxes.end(begun(table.boxes.begin(request)), 200)
        added = [one for one in table.rows()[before:] if one[0] == "edit"]
        assert [one[1] for one in added] == ([operation] if operation else [])
        assert [(box, label) for box, label, _ in table.stored()] == [
            (box, state.label) for box, state in table.boxes.log.read().boxes[coco_id(1), "anna"].items()
        ]
    assert table.standing() == []


@pytest.mark.parametrize("status", [412, 400, 404])
def test_a_refused_or_stale_edit_does_not_count(table: Table, status: int) -> None:
    number = begun(table.boxes.begin(table.add()))
    table.boxes.end(number, status, b"{}")
    assert table.rows() == [("edit", "add", "anna"), ("outcome", "refused", "anna")]
    assert read_box_log(table.path).rows[1].status == status
    assert (table.standing(), table.stored()) == ([], [])


@pytest.mark.parametrize("in_database", [True, False])
def test_a_kill_between_log_and_outcome_is_found_out_at_the_next_start(table: Table, in_database: bool) -> None:
    begun(table.boxes.begin(table.add()))
    if in_database:
        table.write(drawn())
    again = table.open("anna")
    settled = again.settle()
    assert (settled.applied, settled.refused, settled.unknown) == (int(in_database), int(not in_database), 0)
    assert table.rows()[1] == ("outcome", "applied" if in_database else "refused", "anna")
    assert "at a start" in read_box_log(table.path).rows[1].note
    assert len(table.standing()) == len(table.stored()) == int(in_database)
    # Once settled, always settled.
    assert again.settle().applied == 0
    assert len(table.rows()) == 2


def test_a_kill_amid_several_edits_of_a_box(table: Table) -> None:
    table.boxes.end(begun(table.boxes.begin(table.add())), 200)
    begun(table.boxes.begin(table.request({"op": "replace", "path": "/bounding_box/0", "value": 0.5}, label=ID)))
    table.write(drawn(box=[0.5, *SHARES[1:]]))
    begun(table.boxes.begin(table.request({"op": "replace", "path": "/label", "value": "zebra"}, label=ID)))
    settled = table.open("anna").settle()
    assert (settled.applied, settled.refused, settled.unknown) == (1, 1, 0)
    assert table.standing() == [BoxState(box=("48", *PIXELS[1:]), label="unknown")]


def test_what_nothing_can_tell_does_not_count_and_the_log_is_the_truth(table: Table) -> None:
    table.boxes.end(begun(table.boxes.begin(table.add())), 200)
    begun(table.boxes.begin(table.request({"op": "replace", "path": "/label", "value": "zebra"}, label=ID)))
    table.write(drawn("pizza"), drawn(number=OTHER))
    settled = table.open("anna").settle()
    assert (settled.unknown, settled.images) == (1, 1)
    assert table.stored() == [(ID, "unknown", SHARES)]
    assert table.standing() == [BoxState(box=PIXELS, label="unknown")]


def test_a_start_brings_a_new_database_up_to_the_log(table: Table) -> None:
    table.boxes.end(begun(table.boxes.begin(table.add())), 200)
    table.boxes.declare([table.sample])
    table.write()
    assert table.open("anna").settle().images == 1
    assert table.stored() == [(ID, "unknown", SHARES)]
    assert table.boxed() == ["anna"]
    assert table.open("anna").settle().images == 0


def test_an_answer_that_failed_is_looked_up(table: Table) -> None:
    number = begun(table.boxes.begin(table.add()))
    table.write(drawn())
    table.boxes.end(number, 500)
    assert table.rows()[1][1] == "applied"
    number = begun(table.boxes.begin(table.request({"op": "replace", "path": "/label", "value": "zebra"}, label=ID)))
    table.boxes.end(number, 500)
    assert table.rows()[3][1] == "refused"


def test_two_reviewers_keep_their_boxes_apart(table: Table) -> None:
    table.boxes.end(begun(table.boxes.begin(table.add())), 200)
    ben = table.open("ben")
    found = refused(ben.begin(table.request({"op": "remove", "path": ""}, label=ID)))
    assert (found.status, "drawn by anna" in found.what) == (409, True)
    ben.end(begun(ben.begin(table.add(drawn(number=OTHER)))), 200)
    assert len(table.stored()) == 2
    # An edit of anna under way is anna's server's business: a start of ben leaves it open.
    begun(table.boxes.begin(table.request({"op": "replace", "path": "/label", "value": "zebra"}, label=ID)))
    table.write(drawn("zebra"), drawn(number=OTHER))
    table.open("ben").settle()
    assert [one[1] for one in table.stored()] == ["zebra", "unknown"]
    assert len(table.boxes.log.read().pending) == 1


def test_complete_is_the_reviewers_word_until_the_next_edit(table: Table) -> None:
    assert table.boxes.declare([table.sample]) == "1 image: every unknown object is boxed"
    assert table.boxes.declare([table.sample]).startswith("0 images")
    assert table.boxed() == ["anna"]
    table.boxes.end(begun(table.boxes.begin(table.add())), 200)
    assert table.boxes.log.read().complete == set()
    table.open("anna").settle()
    assert not table.boxed()
    table.boxes.declare([table.sample])
    table.boxes.declare([table.sample], complete=False)
    assert [one[0] for one in table.rows()] == ["complete", "edit", "outcome", "complete", "reopen"]


HOSTILE: list[tuple[dict[str, Any], str]] = [
    ({"value": drawn("zebra\x1b[31m")}, "label"),
    ({"value": drawn("dragon")}, "label"),
    ({"value": drawn(box=[0.9, 0.9, 0.5, 0.5])}, "inside the image"),
    ({"value": drawn(box=[-0.2, 0.1, 0.5, 0.5])}, "none below 0"),
    ({"value": drawn(box=[0.1, 0.1, 0, 0.5])}, "width and a height"),
    ({"value": drawn(box=[0.1, 0.1, 1e308, 0.5])}, ""),
    ({"value": drawn(box=[0.1, 0.1, float("nan"), 0.5])}, ""),
    ({"value": drawn(box=["0.1", 0.1, 0.2, 0.5])}, ""),
    ({"value": drawn(box=[0.1, 0.1, 0.2])}, ""),
    ({"value": drawn(mask_path="/etc/passwd")}, "rectangle"),
    ({"value": drawn(mask="AAAA")}, "rectangle"),
    ({"value": drawn(filepath="/etc/passwd")}, "rectangle"),
    # FiftyOne stores what stands there, and cannot read the sample any more.
    ({"value": drawn(attributes={"a": [1]})}, "rectangle"),
    ({"value": drawn(instance={"_cls": "x"})}, "rectangle"),
    ({"path": "/missing/__init__/__globals__/x", "value": 1}, "cannot be applied"),
    ({"value": drawn(number="../../x")}, "box_id"),
    ({"value": drawn(number="")}, "box_id"),
    ({"value": None}, ""),
    ({"value": [1, 2]}, ""),
    ({"path": "/missing/detections/7", "value": drawn()}, "cannot be applied"),
    ({"path": "/missing/detections/0/bounding_box/9", "value": 1}, "cannot be applied"),
    ({"path": "/missing/detections/" + "9" * 5000, "value": drawn()}, ""),
    ({"op": "move", "from": "/missing/detections/0", "path": "/missing/detections/1"}, "adds, replaces"),
]


@pytest.mark.parametrize(("change", "told"), HOSTILE, ids=lambda one: str(one)[:60])
def test_what_is_no_box_is_refused_and_not_logged(table: Table, change: dict[str, Any], told: str) -> None:
    request = table.request({"op": "add", "path": "/missing/detections/-", **change})
    found = refused(table.boxes.begin(request))
    assert found.status in (400, 422)
    assert told in f"{found.what} {found.hint}"
    assert not table.path.exists()


def test_a_box_that_slips_over_the_edge_is_cut_off_there(table: Table) -> None:
    number = begun(table.boxes.begin(table.add(drawn(box=[-0.002, 0.5, 0.502, 0.503]))))
    row = read_box_log(table.path).rows[0]
    assert row.after == BoxState(box=("0", "32", "48", "32"), label="unknown")
    table.boxes.end(number, 200)
    assert table.stored()[0][2] == [0, 0.5, 0.5, 0.5]


def test_an_image_has_a_limit_of_boxes(table: Table) -> None:
    many = [drawn(number=f"{place:024x}") for place in range(1001)]
    found = refused(table.boxes.begin(table.request({"op": "add", "path": "/missing", "value": {"detections": many}})))
    assert found.status == 422
