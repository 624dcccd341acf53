"""Counts of lists: rows, different images, and those listed again by one person."""

from curation.review.decisions.agreement import count_lists
from curation.review.decisions.decision import Decision


def row(image: str, reviewer: str = "", reason: str = "", action: str = "remove") -> Decision:
    return Decision(
        image_id=f"coco:{image}",
        dataset="coco",
        stage="manual",
        action=action,  # type: ignore[arg-type]
        reviewer=reviewer,
        reason=reason,
    )


def test_two_people_who_agree_repeat_nothing() -> None:
    rows = [row("1", "anna"), row("1", "ben"), row("2", "anna", "x"), row("2", "anna", "y"), row("3")]
    (one,) = count_lists(rows)
    assert (one.listed, one.unique, one.repeated) == (5, 3, ("coco:2",))
    assert one.reasons == {"": (3, 2), "x": (1, 1), "y": (1, 1)}


def test_lists_come_in_the_order_of_the_stages() -> None:
    rows = [
        Decision(image_id="a:1", dataset="a", stage="candidate", action="add_far"),
        row("1", action="to_near"),
        Decision(image_id="a:1", dataset="a", stage="auto_override", action="keep_near"),
        row("1"),
    ]
    assert [(one.stage, one.action) for one in count_lists(rows)] == [
        ("auto_override", "keep_near"),
        ("manual", "remove"),
        ("manual", "to_near"),
        ("candidate", "add_far"),
    ]
    assert count_lists([]) == ()
