"""Names of options: one word an idea over all commands.

A parameter of a function is an option of its own name. Those below are called otherwise on the command line, or share
an option with others as one of its keys: ``--on-error boxes=drop`` gives the parameter ``bad_boxes``. Python keeps the
parameters as they are.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple


class Help(argparse.HelpFormatter):
    """Help in which a line break of a text stays one: each key of an option has a line of its own."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        first, *keys = text.split("\n")
        lines = super()._split_lines(first, width)
        for key in keys:
            head, *rest = super()._split_lines(key, width - 2)
            lines += [f"  {head}", *(f"    {line}" for line in rest)]
        return lines


class Once(argparse.Action):
    """Stores the value of an option, and refuses a second one."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Store the value."""
        seen = vars(namespace).setdefault(_SEEN, set())
        if option is not None and self.dest in seen:
            raise argparse.ArgumentError(self, f"is given twice: {str(values)[:200]}")
        seen.add(self.dest)
        setattr(namespace, self.dest, values)


_SEEN = "_seen"
"""Where a namespace holds the names of options that were given."""


class OptionName(NamedTuple):
    """What a parameter is called on the command line.

    Attributes
    ----------
    option : str
        The option, without dashes.
    key : str
        Where the option is KEY=VALUE: the key that gives this parameter. ``""``: all of the option that has no key.
    words : tuple of str
        Of a flag that is a key: the word for False, and that for True.
    """

    option: str
    key: str = ""
    words: tuple[str, str] = ("no", "yes")


_SETTINGS = """
seam names edits setting betas fbeta_formula fbeta_ratios recalls level_counts difficult similar thetas
t_star fpr official_compat embedding precision random_weights template batch threads batch_size n_train sample
radius plant weighting restarts exemplars iou unknown unknown_id id_form strict_layout class_names
class_tree image_limit class_limit
"""
NAMES: Mapping[str, OptionName | None] = {
    # What to do about data that cannot be used as it is.
    "bad_boxes": OptionName("on-error", "boxes"),
    "stray": OptionName("on-error", "stray"),
    "other_classes": OptionName("on-error", "classes"),
    "negative_sizes": OptionName("on-error", "sizes"),
    "any_scores": OptionName("on-error", "scores", ("error", "keep")),
    "repeats": OptionName("on-error", "repeats"),
    "outside": OptionName("on-error", "outside"),
    "shared_ids": OptionName("on-error", "shared-ids"),
    "broken": OptionName("on-error", "photos"),
    "allow_conflicts": OptionName("on-error", "conflicts", ("error", "keep")),
    "blank": OptionName("on-error", "blank"),
    "isolated": OptionName("on-error", "isolated"),
    "components": OptionName("on-error", "components"),
    # Settings of one benchmark, data set, format or computation.
    **{name: OptionName("set", name) for name in _SETTINGS.split()},
    "OodOptions.threshold": OptionName("set", "threshold"),
    "evaluate.queries": OptionName("set", "queries"),
    "evaluate.id_classes": OptionName("set", "id_classes"),
    "evaluate.boxes": OptionName("set", "boxes"),
    # One word an idea.
    "profile": OptionName("variant"),
    "grid": OptionName("variant"),
    "apply_from_files.variant": OptionName("cleaned"),
    "overlay": OptionName("added-boxes"),
    "apply_from_files.boxes": OptionName("added-boxes"),
    "boxes_rule": OptionName("rule", "boxes"),
    "score_key": OptionName("key", "score"),
    "image_key": OptionName("key", "image"),
    "label_key": OptionName("key", "label"),
    "columns": OptionName("key"),
    "seed": OptionName("bootstrap", "seed"),
    "confidence": OptionName("bootstrap", "confidence"),
    "val": OptionName("scores", "val"),
    "val_labels": OptionName("labels", "val"),
    "val_part": OptionName("part", "val"),
    "wilderness_part": OptionName("part", "wilderness"),
    "id_scores": OptionName("scores"),
    "without_kin": OptionName("without", "related"),
    "duplicates.images": OptionName("photos"),
    "evaluate.images": OptionName("lists"),
    "kin.images": OptionName("lists"),
    "id_photos": OptionName("photos", "id"),
    "against_embeddings": OptionName("embeddings", "against"),
    "embeddings_id": OptionName("embeddings", "id"),
    "embeddings_ood": OptionName("embeddings"),
    "detector_categories": OptionName("detections", "categories"),
    "near_classes": OptionName("near"),
    "far_classes": OptionName("far"),
    "ood": OptionName("source"),
    "propose_from_files.id_classes": OptionName("classes"),
    "parts": OptionName("resume"),
    "hashes": OptionName("resume"),
    "evidence": OptionName("resume"),
    "group_column": OptionName("group", "column"),
    "declare": OptionName("header-only"),
    "reason": OptionName("note"),
    "exit_code": OptionName("strict"),
    # Arguments of Python alone.
    "presence.classes": None,
}
"""By parameter, or by function and parameter; None: no option."""

ABOUT: Mapping[str, str] = {
    "on-error": "what to do about data that cannot be used as it is",
    "set": "a setting",
    "key": "where a file has what it is read for",
    "part": "a part of the manifest",
    "labels": "labels of the images",
    "without": "the numbers once more without some images",
}
"""Help of an option that is keys alone."""


def name_of(function: str, parameter: str) -> OptionName | None:
    """Return what a parameter of a function is called on the command line; None where it is none of its options."""
    return NAMES.get(f"{function}.{parameter}", NAMES.get(parameter, OptionName(parameter.replace("_", "-"))))


def renamed(option: str, known: Collection[str]) -> str | None:
    """Return what an option of an earlier version, without dashes, is now, among those that a command knows."""
    found = [
        f"--{now.option}" + (f" {now.key}=…" if now.key else "")
        for name, now in NAMES.items()
        if name.rpartition(".")[2].replace("_", "-") == option.removeprefix("no-")
        and now is not None
        and f"--{now.option}" in known
    ]
    return " or ".join(dict.fromkeys(found)) or None
