import pytest

from curation.review.app.progress import measure_progress, next_batch, progress_markdown, progress_text, share_text
from curation.review.app.verdicts import Key, Standing
from curation.review.decisions.decision import Decision

KEYS: list[Key] = [("pool", f"coco:{number}") for number in range(10)]
BATCHES = {key: f"{1 + place // 5:04}" for place, key in enumerate(KEYS)}


def standing(key: Key, **words: str) -> Standing:
    return Standing(
        tuple(
            Decision(image_id=key[1], dataset=key[0], stage="manual", action=action, reviewer=name)  # type: ignore[arg-type]
            for name, action in words.items()
        )
    )


def test_nothing_is_decided_at_the_start() -> None:
    progress = measure_progress(BATCHES, {})
    assert (progress.images, progress.decided, progress.conflicts) == (10, 0, 0)
    assert [(one.batch, one.images) for one in progress.batches] == [("0001", 5), ("0002", 5)]
    assert progress.agreement == ()
    assert next_batch(BATCHES, {}) == "0001"


def test_batches_reviewers_and_conflicts_are_counted() -> None:
    found = {
        KEYS[0]: standing(KEYS[0], anna="to_near", ben="to_near"),
        KEYS[1]: standing(KEYS[1], anna="to_near", ben="remove"),
        KEYS[5]: standing(KEYS[5], ben="unsure"),
        KEYS[6]: Standing(()),
        ("pool", "coco:gone"): standing(("pool", "coco:gone"), anna="remove"),
    }
    progress = measure_progress(BATCHES, found)
    assert (progress.decided, progress.conflicts, progress.strangers) == (3, 1, 1)
    assert [(one.decided, one.conflicts) for one in progress.batches] == [(2, 1), (1, 0)]
    assert progress.verdicts == {"near": 1, "unsure": 1, "conflict": 1}
    assert [(one.reviewer, one.verdicts) for one in progress.reviewers] == [
        ("anna", {"near": 2}),
        ("ben", {"remove": 1, "near": 1, "unsure": 1}),
    ]


def test_agreement_is_cohens_kappa_of_the_images_that_both_decided() -> None:
    # By hand: observed 3/4; anna near 2 far 2, ben near 3 far 1: expected (2*3 + 2*1)/16 = 1/2; kappa 1/2.
    pairs = [("to_near", "to_near"), ("to_near", "to_near"), ("to_far", "to_far"), ("to_far", "to_near")]
    found = {KEYS[place]: standing(KEYS[place], anna=a, ben=b) for place, (a, b) in enumerate(pairs)}
    (pair,) = measure_progress(BATCHES, {**found, KEYS[9]: standing(KEYS[9], anna="remove")}).agreement
    assert (pair.first, pair.second, pair.images, pair.same, pair.kappa.value) == ("anna", "ben", 4, 3, 0.5)


def test_an_undefined_kappa_says_why() -> None:
    progress = measure_progress(BATCHES, {KEYS[0]: standing(KEYS[0], anna="remove", ben="remove")})
    assert progress.agreement[0].kappa.value is None
    assert "undefined: every verdict is the same" in progress_markdown(progress)


def test_three_reviewers_have_fleiss_kappa_too() -> None:
    found = {
        KEYS[0]: standing(KEYS[0], anna="remove", ben="remove", eva="remove"),
        KEYS[1]: standing(KEYS[1], anna="keep", ben="keep", eva="keep"),
    }
    progress = measure_progress(BATCHES, found)
    assert len(progress.agreement) == 3
    assert progress.fleiss is not None
    assert progress.fleiss.value == 1.0
    assert "Fleiss' kappa of all: 1.00" in progress_markdown(progress)


def test_many_open_batches_are_cut_short() -> None:
    batches = {("pool", f"coco:{number}"): f"{number:04}" for number in range(40)}
    assert "and 28 more" in progress_markdown(measure_progress(batches, {}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (progress_text(412, 2000), "412 of 2,000"),
        (progress_text(2000, 2000), "2,000 of 2,000, all decided"),
        (share_text(1, 2000), "under 1 %"),
        (share_text(0, 2000), "0 %"),
        (share_text(1999, 2000), "99 %"),
        (share_text(0, 0), "0 %"),
    ],
)
def test_counts_and_shares_as_they_are_shown(text: str, expected: str) -> None:
    assert text == expected
