import json
import os
from pathlib import Path
from typing import Any

import pytest

from curation.core.errors import CurationError, ReviewError
from curation.review.app.live_review import LiveReview, offer_own_view, open_review
from curation.review.app.session import resume_review, start_review
from curation.review.decisions.decision import Decision
from curation.review.decisions.files import DecisionLog, read_decisions
from curation.review.decisions.from_files import report_decisions
from curation.review.decisions.review_folder import folder_progress
from tests.review.app.review_world import ReviewWorld, coco_id

# FiftyOne's own use of its packages is not ours to mend.
pytestmark = [pytest.mark.mongo, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def samples(review: LiveReview, *numbers: int) -> list[str]:
    by_image = dict(zip(*review.dataset.values(["image_id", "id"]), strict=True))
    return [by_image[coco_id(number)] for number in numbers]


def verdicts(review: LiveReview) -> dict[str, str]:
    values = zip(*review.dataset.values(["image_id", "verdict"]), strict=True)
    return {image: verdict for image, verdict in values if verdict}


def test_a_verdict_is_in_the_log_and_on_the_samples(review: LiveReview) -> None:
    done = review.decide(samples(review, 8, 9), "near", reason="stripes", reviewer="anna")
    assert (done.images, done.text) == (2, "2 images: near (stripes)")
    assert verdicts(review) == {coco_id(8): "near", coco_id(9): "near"}
    rows = read_decisions(review.book.path).decisions
    assert [(row.image_id, row.action, row.batch, row.dataset) for row in rows] == [
        (coco_id(8), "to_near", "0001", "coco"),
        (coco_id(9), "to_near", "0001", "coco"),
    ]
    sample = review.dataset.match({"image_id": coco_id(8)}).first()
    assert (sample.verdicts, sample.decided_by) == (["anna: near (stripes)"], ["anna"])


def test_the_same_verdict_once_more_is_no_row_and_one_undo(review: LiveReview) -> None:
    first = review.decide(samples(review, 8), "near", reviewer="anna")
    again = review.decide(samples(review, 8), "near", reviewer="anna")
    assert (again.images, again.text, again.samples) == (0, "1 image: near already", first.samples)
    assert review.decide(samples(review, 8, 9), "near", reviewer="anna").images == 1
    assert review.decide(samples(review, 8), "near", reason="stripes", reviewer="anna").images == 1
    assert len(read_decisions(review.book.path).decisions) == 3
    undone = review.undo("anna")
    # Taken back to the verdict before: nothing waits.
    assert (undone.samples, undone.waiting) == (first.samples, ())
    assert verdicts(review) == {coco_id(8): "near", coco_id(9): "near"}


def test_a_verdict_that_the_database_missed_is_told_and_made_good(
    review: LiveReview, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pymongo.collection import Collection
    from pymongo.errors import AutoReconnect

    def gone(*_: Any, **__: Any) -> None:
        raise AutoReconnect("connection refused")

    with monkeypatch.context() as patched:
        patched.setattr(Collection, "bulk_write", gone)
        with pytest.raises(ReviewError, match="in the log, but the database does not answer"):
            review.decide(samples(review, 8), "near", reviewer="anna")
    assert verdicts(review) == {}
    assert review.decide(samples(review, 8), "near", reviewer="anna").images == 0
    assert verdicts(review) == {coco_id(8): "near"}
    assert len(read_decisions(review.book.path).decisions) == 1


def test_each_reviewer_has_a_view_of_what_waits_for_them(review: LiveReview) -> None:
    review.decide(samples(review, 8, 9), "near", reviewer="anna")
    anna, ben = (offer_own_view(review.dataset, one) for one in ("anna", "ben"))
    assert (anna, ben) == ("to decide: anna", "to decide: ben")
    assert offer_own_view(review.dataset, "anna") == anna
    assert offer_own_view(review.dataset, "Anna") == "to decide: Anna (2)"
    assert offer_own_view(review.dataset, "a" * 100) == offer_own_view(review.dataset, "a" * 100)
    sizes = [len(review.dataset.load_saved_view(one)) for one in ("to decide", anna, ben)]
    assert sizes == [10, 10, 12]
    # In the order of the evidence, whatever others judged.
    order = review.dataset.values("image_id")
    waiting = [image for image in order if image not in (coco_id(8), coco_id(9))]
    assert [review.dataset.load_saved_view(one).values("image_id") for one in (anna, ben)] == [waiting, order]
    review.decide(samples(review, 8), "near", reviewer="ben")
    assert len(review.dataset.load_saved_view(ben)) == 11
    assert review.decided_by("ben") == samples(review, 8)
    assert review.progress_text("ben") == "1 of 12"


def test_two_reviewers_may_differ(review: LiveReview) -> None:
    review.decide(samples(review, 8, 9), "near", reviewer="anna")
    review.decide(samples(review, 8, 9), "near", reviewer="ben")
    review.decide(samples(review, 9), "far", reviewer="ben")
    assert verdicts(review) == {coco_id(8): "near", coco_id(9): "conflict"}
    assert len(review.dataset.load_saved_view("conflicts")) == 1
    _, progress = folder_progress(review.book.path.parent)
    assert (progress.images, progress.decided, progress.conflicts) == (12, 2, 1)
    (stage,) = report_decisions((review.book.path.parent,)).agreement
    (pair,) = stage.pairs
    assert (pair.first, pair.second, pair.images, pair.same) == ("anna", "ben", 2, 1)


NO_SELECTIONS: list[Any] = [[], None, "0" * 24, ["0" * 24], ["nonsense"], [{"$ne": 1}], [None], 7]
NO_VERDICTS: list[Any] = [
    ("maybe", "", "anna"),
    ("near", "\x1b[2J", "anna"),
    ("near", "", ""),
    ("near", "", "a" * 999),
    ("near", 7, "anna"),
]


def test_no_selection_and_hostile_words_are_refused_and_leave_no_row(
    review: LiveReview, subtests: pytest.Subtests
) -> None:
    for chosen in NO_SELECTIONS:
        with subtests.test(chosen=chosen):
            with pytest.raises(ReviewError):
                review.decide(chosen, "near", reviewer="anna")
            assert not review.book.path.exists()
    for verdict, reason, reviewer in NO_VERDICTS:
        with subtests.test(verdict=verdict, reason=reason, reviewer=reviewer):
            with pytest.raises(CurationError):
                review.decide(samples(review, 8), verdict, reason=reason, reviewer=reviewer)
            assert not review.book.path.exists()
            assert verdicts(review) == {}


def test_a_crash_after_the_log_is_made_good_at_the_next_start(review: LiveReview) -> None:
    review.decide(samples(review, 8), "near", reviewer="anna")
    row = Decision(
        image_id=coco_id(9),
        dataset="coco",
        stage="manual",
        action="remove",
        reviewer="ben",
        date="2025-03-01T10:00:00Z",
    )
    DecisionLog(review.book.path).extend([row])
    assert verdicts(review) == {coco_id(8): "near"}
    started = resume_review(review.book.path.parent)
    assert started.replayed == 1
    assert verdicts(started.review) == {coco_id(8): "near", coco_id(9): "remove"}
    assert resume_review(review.book.path.parent).replayed == 0


def test_a_database_that_lost_everything_is_rebuilt_from_the_log(
    fiftyone: Any, world: ReviewWorld, tmp_path: Path
) -> None:
    started = start_review(tmp_path / "review", "lost", world.images())
    started.review.decide(samples(started.review, 8, 9), "near", reviewer="anna")
    fiftyone.delete_dataset("lost")
    with pytest.raises(ReviewError, match="not in the database"):
        resume_review(tmp_path / "review")
    again = start_review(tmp_path / "review", "lost", world.images())
    assert again.replayed == 2
    assert verdicts(again.review) == {coco_id(8): "near", coco_id(9): "near"}
    fiftyone.delete_dataset("lost")


def test_a_dataset_may_not_name_a_log_of_its_choice(review: LiveReview, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    original = dict(review.dataset.info["curation_review"])
    (other / "review.json").write_text(json.dumps({"dataset": "x"}))
    outside = [str(other / "decisions.jsonl"), "decisions.jsonl", os.devnull, 7, None, "\0", str(tmp_path / "x.jsonl")]
    for log in outside:
        review.dataset.info["curation_review"] = {**original, "log": log}
        with pytest.raises(ReviewError, match="names no decisions log"):
            open_review(review.dataset)
    assert not (other / "decisions.jsonl").exists()
