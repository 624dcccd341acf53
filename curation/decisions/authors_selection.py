"""The selection file of the FindMeIfYouCan authors (``manual_selection``) read directly, as YAML or JSON.

Its lists of image ids become decisions without reviewer and date (section 1.5 of the protocol's specification). In YAML
an id without quotes can turn into a number (``0010e235`` is 0), so the tag of every id is looked at before its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from curation.decisions.decision import Action, Decision, Stage, check_decision
from curation.decisions.trees import INTEGER, TEXT, Keyed, Leaf, parse_json_tree, parse_yaml_tree
from curation.errors import CurationError, DecisionError
from curation.ids import coco_native
from curation.sources.datasets import family, namespace_of

_COCO_NUMBER = re.compile(r"[1-9][0-9]{0,11}|0")
_OPEN_IMAGES_ID = re.compile(r"[0-9a-f]{16}")

CANDIDATES = "FROM_CANDIDATES"
LISTS: dict[str, tuple[Stage, Action]] = {
    "KEEP_TO_NEAR_IDS": ("auto_override", "keep_near"),
    "REMOVE_IDS": ("auto_override", "remove"),
    "UNFILTERED_IMAGES_TO_REMOVE": ("manual", "remove"),
    "UNFILTERED_IMAGES_TO_NEAR": ("manual", "to_near"),
    "UNFILTERED_IMAGES_TO_FAR": ("manual", "to_far"),
}
"""What the top keys of the file mean; beside them stands `CANDIDATES`, whose keys end in ``_near`` or mean far."""


def parse_yaml_selection(data: bytes, name: str) -> list[Decision]:
    """Return the decisions of the authors' file in file order; ids listed twice stand twice.

    Raises
    ------
    DecisionError
        It is not such a file (see `curation.decisions.trees.parse_yaml_tree`), or an id is unquoted and would be read
        as a number where texts are expected. The message names the line.
    """
    return _decisions(parse_yaml_tree(data, name), name)


def parse_json_selection(data: bytes, name: str) -> list[Decision]:
    """Return the decisions of the authors' file written as JSON (see `parse_yaml_selection`)."""
    return _decisions(parse_json_tree(data, name), name)


def _decisions(root: Any, name: str) -> list[Decision]:
    found: list[Decision] = []
    for key, by_dataset in _mapping(root, name):
        if key != CANDIDATES and key not in LISTS:
            raise DecisionError(
                "The file has a list that is unknown here",
                where=getattr(by_dataset, "where", name),
                expected=", ".join((CANDIDATES, *LISTS)),
                found=ascii(key)[:80],
            )
        for dataset, value in _mapping(by_dataset, f"{name}: {key}"):
            found += _of_list(key, dataset, value, f"{name}: {key}.{dataset}")
    return found


def _of_list(key: str, dataset: str, value: Any, where: str) -> Iterator[Decision]:
    stage: Stage
    action: Action
    if key == CANDIDATES:
        stage, action = "candidate", "add_near" if dataset.endswith("_near") else "add_far"
        dataset = dataset.removesuffix("_near")
    else:
        stage, action = LISTS[key]
    by_reason = list(value.items) if isinstance(value, Keyed) else [("", value)]
    for reason, leaves in by_reason:
        if not isinstance(leaves, list):
            raise DecisionError("Ids are missing", where=where, expected="a list of image ids")
        for leaf in leaves:
            one = Decision(
                image_id=_image_id(leaf, dataset, where),
                dataset=dataset,
                stage=stage,
                action=action,
                reason=reason,
            )
            check_decision(one, where=leaf.where)
            yield one


def _mapping(value: Any, where: str) -> tuple[tuple[str, Any], ...]:
    if isinstance(value, Keyed):
        return value.items
    raise DecisionError("The file is no selection of images", where=where, expected=_layout())


def _image_id(leaf: Any, dataset: str, where: str) -> str:
    if not isinstance(leaf, Leaf):
        raise DecisionError("An image id is no text", where=where, found=type(leaf).__name__)
    try:
        namespace = namespace_of(dataset)
    except CurationError as error:
        raise DecisionError(
            "A list has no data set", where=where, expected=error.expected, found=dataset[:60]
        ) from None
    if family(dataset) == "coco":
        return f"{namespace}:{_coco_id(leaf)}"
    if leaf.kind != TEXT:
        raise DecisionError(
            f"An image id would be read as a number or another value ({leaf.kind})",
            where=leaf.where,
            expected=f"ids of {dataset} in quotes",
            found=ascii(leaf.text)[:60],
            hint=f'write "{leaf.text[:20]}"' if leaf.text.isalnum() else None,
        )
    if dataset == "openimages" and not _OPEN_IMAGES_ID.fullmatch(leaf.text):
        raise DecisionError(
            "An image id is none of Open Images",
            where=leaf.where,
            expected="16 hexadecimal digits",
            found=ascii(leaf.text)[:60],
        )
    return f"{namespace}:{leaf.text}"


def _coco_id(leaf: Leaf) -> str:
    # 010 is eight in YAML 1.1, and 1_000 a thousand: only what reads the same everywhere passes.
    if leaf.kind in (TEXT, INTEGER) and _COCO_NUMBER.fullmatch(leaf.text):
        return coco_native(int(leaf.text))
    raise DecisionError(
        "An image id is no number of COCO",
        where=leaf.where,
        expected="a plain whole number, without leading zeros, of at most 12 digits",
        found=f"{ascii(leaf.text)[:60]} ({leaf.kind})",
    )


def _layout() -> str:
    return f"{CANDIDATES}, {', '.join(LISTS)}: each by data set, then ids, or ids by reason"
