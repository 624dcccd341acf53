"""The paper's own arithmetic: counts that must add up, and the number of wilderness levels."""

from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.elephant.lists import FIGURES, TRAINING_FIGURES, level_count


def test_figures_add_up() -> None:
    closed = {name: number for name, (number, _) in FIGURES["closed"].items()}
    assert closed["closed.boxes"] == closed["closed.non_difficult_boxes"] + closed["closed.difficult_boxes"]
    wild = {name: number for name, (number, _) in FIGURES["wilderness"].items()}
    assert wild["wilderness.images"] == wild["wilderness.annotated_images"] + wild["wilderness.unannotated_images"]
    assert wild["coco.images"] - wild["coco.annotated_images"] == wild["wilderness.unannotated_images"]
    assert wild["wr1.images"] == closed["closed.images"]
    # VOC2007 trainval has 5,011 images and 15,662 objects; VOC2012 trainval 11,540 and 31,561.
    assert [sum(column) for column in zip(*list(TRAINING_FIGURES.values())[:2], strict=True)][:2] == [5011, 15662]
    assert [sum(column) for column in zip(*list(TRAINING_FIGURES.values())[2:], strict=True)][:2] == [11540, 31561]


def test_the_paper_has_47_levels() -> None:
    assert level_count(4952, 23008) == FIGURES["wilderness"]["wilderness.levels"][0]


@given(st.integers(1, 500), st.integers(0, 3000))
def test_levels_counted_one_by_one(closed: int, wilderness: int) -> None:
    levels = 0
    while levels * closed // 10 <= wilderness:
        levels += 1
    assert level_count(closed, wilderness) == levels
