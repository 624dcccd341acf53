"""The rules of the open-world lists in words, as a manifest states them."""

from __future__ import annotations

TRAIN_RULE = (
    "Images with an annotation of a class that {task} introduces{crowd}, whatever its size{less}; {order} "
    "(create_t{number}_imageset.py)."
)
FIRST_TRAIN_RULE = "All images of {sources}."
VAL_RULES = {
    "hash": "The first {size} images of {task}'s selection by hash rank (salt {salt}) that no earlier task has taken; "
    "they are taken out of every task's training list.",
    "published": "Lines {first} to {last} of the published list; they are taken out of every task's training list.",
}
FINETUNE_RULE = (
    "At least {size} images of every class known by {task}, where the training lists up to it have as many: "
    "rarest class first, by hash rank (salt {salt})."
)
TEST_RULE = "Images with any annotation: those without one are left out. One list for all tasks; {order}."
MIXED_RULE = (
    "All images of {first}, and those of {second} with a class of the second task, of the third, and so on{repeats}; "
    "{order}."
)
