import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from curation.core.errors import CurationError, CurationWarning, ReviewError
from curation.manifest.built_from import BuiltFrom
from curation.review.app.live_review import offer_own_view
from curation.review.app.session import ReviewPlan, adjudicate_folder, resume_review, review_from_files, start_review
from curation.review.decisions.files import read_decisions
from curation.review.decisions.review_folder import ReviewRecord, read_record, require_log, write_record
from tests.review.app.review_world import ReviewWorld, coco_id, two_parts

RECORD = ReviewRecord(dataset="d", stage="manual", manifest="", inputs="sha256:0", batches={"0001": 3})


@pytest.mark.mongo
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
class TestOneReviewAfterAnother:
    @pytest.fixture(autouse=True)
    def clean(self, fiftyone: Any) -> Any:
        yield
        for name in ("s", "t"):
            if fiftyone.dataset_exists(name):
                fiftyone.delete_dataset(name)

    def test_the_same_inputs_continue_with_what_the_user_tagged(self, world: ReviewWorld, tmp_path: Path) -> None:
        first = start_review(tmp_path / "r", "s", world.images())
        first.review.dataset.tag_samples("mine")
        second = start_review(tmp_path / "r", "s", world.images())
        assert (first.built, second.built) == (True, False)
        assert second.review.dataset.count_sample_tags() == {"mine": 12}
        assert not resume_review(tmp_path / "r").built

    def test_a_blind_review_stores_no_verdict_until_a_third_person_settles(
        self, world: ReviewWorld, tmp_path: Path
    ) -> None:
        started = start_review(tmp_path / "r", "s", world.images(), reviewer="anna", blind=True)
        review, ids = started.review, started.review.dataset.values("id")
        review.decide(ids[:3], "near", reason="stripes", reviewer="anna")
        review.decide(ids[:2], "far", reason="no legs", reviewer="ben")
        review.decide(ids[2:3], "near", reviewer="ben")
        # Nothing of what was decided is in the database, whatever a page asks its server for.
        assert review.dataset.count_values("verdict") == {None: 12}
        assert review.dataset.count_values("verdicts") == {}
        assert review.dataset.count_values("decided_by") == {"anna": 3, "ben": 3}
        assert "stripes" not in str(list(review.dataset._sample_collection.find({})))
        assert [one["verdict"] for one in review.latest("ben")] == ["near", "far", "far"]
        with pytest.raises(ReviewError, match="a third person"):
            adjudicate_folder(folder=tmp_path / "r", reviewer="ben", no_app=True)
        third = adjudicate_folder(folder=tmp_path / "r", reviewer="cleo", no_app=True).review
        assert third.dataset.count_values("verdict") == {None: 9, "conflict": 2, "near": 1}
        assert third.dataset.match({"verdict": "conflict"}).first().verdicts == [
            "anna: near (stripes)", "ben: far (no legs)",
        ]  # fmt: skip
        assert offer_own_view(third.dataset, "cleo") == "conflicts"
        assert third.progress_text("cleo") == "0 of 2"
        third.decide(ids[:1], "remove", reason="horse", reviewer="cleo")
        assert third.progress_text("cleo") == "1 of 2"
        assert third.dataset.count_values("verdict") == {None: 9, "conflict": 1, "near": 1, "remove": 1}

    def test_each_is_shown_what_is_assigned(self, world: ReviewWorld, tmp_path: Path) -> None:
        started = review_from_files(
            folder=tmp_path / "r",
            sources={"coco": world.annotations},
            photos=world.photos,
            name="s",
            reviewer="anna",
            no_app=True,
            plan=ReviewPlan(colleague=("ben",), overlap=0.5, blind=True, order="random", sample=10),
        )
        dataset = started.review.dataset
        sizes = [len(dataset.load_saved_view(offer_own_view(dataset, name))) for name in ("anna", "ben", "cleo")]
        assert sizes == [7, 8, 0]
        assert started.review.progress_text("ben") == "0 of 8"
        with pytest.raises(CurationError, match="fixed when a review is built"):
            review_from_files(folder=tmp_path / "r", reviewer="anna", no_app=True, plan=ReviewPlan(sample=5))
        started.review.decide(dataset.values("id")[:1], "near", reviewer="anna")
        with pytest.raises(ReviewError, match="no conflict"):
            adjudicate_folder(folder=tmp_path / "r", reviewer="cleo", no_app=True)

    def test_other_inputs_need_rebuild_and_keep_the_log(self, world: ReviewWorld, tmp_path: Path) -> None:
        first = start_review(tmp_path / "r", "s", world.images())
        first.review.decide(first.review.dataset.values("id")[:2], "near", reviewer="anna")
        with pytest.raises(ReviewError, match="other inputs"):
            start_review(tmp_path / "r", "s", world.images([]))
        again = start_review(tmp_path / "r", "s", world.images([]), rebuild=True)
        assert (again.built, again.replayed) == (True, 2)
        assert len(read_decisions(again.review.book.path).decisions) == 2

    def test_photos_that_browsers_show_are_shown(self, world: ReviewWorld, tmp_path: Path) -> None:
        for number, kind in ((4, "gif"), (5, "bmp"), (6, "tif"), (7, "TIFF"), (8, "gif")):
            photo = world.photos / f"{number:012d}.jpg"
            Image.open(photo).save(photo.with_suffix(f".{kind}"))
            if number != 8:
                photo.unlink()
        given = {"coco": world.annotations}
        started = review_from_files(folder=tmp_path / "s", sources=given, photos=world.photos, no_app=True)
        assert read_record(tmp_path / "s").bad_photos == {"missing": [coco_id(6), coco_id(7)]}
        shown = dict(zip(*started.review.dataset.values(["image_id", "filepath"]), strict=True))
        names = [Path(shown[coco_id(number)]).name for number in (4, 5, 8)]
        assert names == ["000000000004.gif", "000000000005.bmp", "000000000008.jpg"]
        assert not {coco_id(6), coco_id(7)} & shown.keys()
        world.photos.rename(tmp_path / "moved")
        with pytest.warns(CurationWarning, match="10 of 10 photos not found: .*--rebuild"):
            resume_review(tmp_path / "s")

    def test_sources_that_the_manifest_remembers_are_opened(self, world: ReviewWorld, tmp_path: Path) -> None:
        made = replace(two_parts(world.source()), built_from=BuiltFrom({"coco": str(world.annotations)}))
        path = str(made.save(tmp_path / "m"))
        started = review_from_files(path, folder=tmp_path / "s", photos=world.photos, no_app=True)
        assert started.review.dataset.count("unknown.detections") == 9

    def test_another_folders_review_of_one_name_is_never_replaced(self, world: ReviewWorld, tmp_path: Path) -> None:
        first = start_review(tmp_path / "a" / "r", "s", world.images())
        for images in (world.images(), world.images([])):
            for rebuild in (False, True):
                with pytest.raises(ReviewError, match="the review of another folder") as caught:
                    start_review(tmp_path / "b" / "r", "s", images, rebuild=rebuild)
                assert "choose another --name" in str(caught.value)
        assert not (tmp_path / "b").exists()
        # A copy of the folder must not write to the log of the first.
        shutil.copytree(tmp_path / "a" / "r", tmp_path / "copy")
        with pytest.raises(ReviewError, match="not in the database"):
            resume_review(tmp_path / "copy")
        assert not start_review(tmp_path / "a" / "r", "s", world.images()).built
        assert first.review.dataset.count() == 12
        # That of a folder that was moved is nobody's.
        (tmp_path / "a" / "r").rename(tmp_path / "moved")
        assert start_review(tmp_path / "moved", "s", world.images(), rebuild=True).built

    def test_a_folder_holds_one_review(self, world: ReviewWorld, tmp_path: Path) -> None:
        start_review(tmp_path / "r", "s", world.images())
        with pytest.raises(ReviewError, match="another review"):
            start_review(tmp_path / "r", "t", world.images())
        with pytest.raises(ReviewError, match="another review"):
            start_review(tmp_path / "r", "s", world.images(), stage="candidate")

    def test_a_users_own_dataset_is_never_replaced(self, fiftyone: Any, world: ReviewWorld, tmp_path: Path) -> None:
        fiftyone.Dataset("s")
        for rebuild in (False, True):
            with pytest.raises(ReviewError, match="not a review"):
                start_review(tmp_path / "r", "s", world.images(), rebuild=rebuild)
        assert fiftyone.dataset_exists("s")


@pytest.mark.parametrize("content", ["", "[]", '{"dataset": 1}', "\x00", '{"x":' * 5000])
def test_a_damaged_record_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / "review.json").write_text(content)
    with pytest.raises(ReviewError, match="damaged"):
        read_record(tmp_path)


def test_a_log_belongs_to_the_dataset_that_its_record_names(tmp_path: Path) -> None:
    write_record(tmp_path, RECORD)
    log = tmp_path / "decisions.jsonl"
    assert require_log(str(log), "d") == (log, RECORD)
    with pytest.raises(ReviewError):
        require_log(str(log), "another")
    (tmp_path / "real.jsonl").touch()
    log.symlink_to(tmp_path / "real.jsonl")
    with pytest.raises(ReviewError):
        require_log(str(log), "d")
