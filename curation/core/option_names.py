"""Names of options, the same in all commands.

A parameter of a function is an option with the same name. The parameters below have another name on the command line,
or are a key of an option: ``--on-error boxes=drop`` sets the parameter ``bad_boxes``. `in_python` replaces the options
in a message by parameters.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Mapping
from typing import Any, NamedTuple


class OptionName(NamedTuple):
    """The name of a parameter on the command line.

    Attributes
    ----------
    option : str
        The option, without dashes.
    key : str
        For an option KEY=VALUE: the key of this parameter; ``""`` for the values without a key.
    words : tuple of str
        For a flag that is a key: the word for False, and that for True.
    """

    option: str
    key: str = ""
    words: tuple[str, str] = ("no", "yes")


_SETTINGS = """
names setting betas fbeta_formula fbeta_ratios recalls level_counts difficult similar thetas
t_star fpr official_compat embedding precision random_weights template batch batch_size n_train sample
radius weighting restarts exemplars iou unknown unknown_id id_form
image_limit class_limit
"""
NAMES: Mapping[str, OptionName | None] = {
    # What to do about invalid data.
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
    # Settings of a single benchmark, data set, format or computation.
    **{name: OptionName("set", name) for name in _SETTINGS.split()},
    "OodOptions.threshold": OptionName("set", "threshold"),
    "evaluate.queries": OptionName("set", "queries"),
    "evaluate.id_classes": OptionName("set", "id_classes"),
    # Parameters of several functions that share an option.
    "profile": OptionName("variant"),
    "grid": OptionName("variant"),
    "apply_from_files.variant": OptionName("cleaned"),
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
    "duplicates.images": OptionName("photos"),
    "evaluate.images": OptionName("lists"),
    "kin.images": OptionName("lists"),
    "id_photos": OptionName("photos", "id"),
    "embeddings_id": OptionName("embeddings", "id"),
    "embeddings_ood": OptionName("embeddings"),
    "detector_categories": OptionName("detections", "categories"),
    "near_classes": OptionName("near"),
    "far_classes": OptionName("far"),
    "ood": OptionName("source"),
    "propose_from_files.id_classes": OptionName("classes"),
    "split.parts": OptionName("parts"),
    "split.salt": OptionName("set", "salt"),
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


def name_of(function: str, parameter: str) -> OptionName | None:
    """Return the command line's name of a function's parameter, or None if it is not an option."""
    return NAMES.get(f"{function}.{parameter}", NAMES.get(parameter, OptionName(parameter.replace("_", "-"))))


_MENTIONED = re.compile(
    r"--(?P<option>[a-z][a-z-]*)(?: (?P<key>[A-Za-z][\w@-]*)=(?P<value>[^\s,;)]+)| (?P<word>[A-Z][A-Z_.]*|\d+)\b"
    r"|=(?P<plain>\w+))?"
)
_HELP = re.compile(r"curation evaluate (\w+) --help")


def option_names_of(signature: inspect.Signature, annotations: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return the arguments of a function by option and key; a field of a record is ``reading=Reading(bad_boxes={})``.

    Parameters
    ----------
    signature : inspect.Signature
    annotations : mapping of str to type
        Annotations of the parameters.
    """
    forms: dict[tuple[str, str], str] = {}
    for name, parameter in signature.parameters.items():
        kind = annotations.get(name, parameter.annotation)
        record = next((each for each in (kind, *typing.get_args(kind)) if dataclasses.is_dataclass(each)), None)
        fields = [(field.name, field.type) for field in dataclasses.fields(record) if field.kw_only] if record else []
        record_form = f"{name}={getattr(record, '__name__', '')}({{}})"
        for member, member_kind in fields or [(name, kind)]:
            argument = f"{member}=True" if member_kind in (bool, "bool") else f"{member}={{}}"
            form = record_form.format(argument) if fields else argument
            flags = [extra for extra in typing.get_args(kind)[1:] if isinstance(extra, str) and extra.startswith("--")]
            plain = flags[0].partition(" ")[0][2:] if flags else member.replace("_", "-")
            options = [option for key, option in NAMES.items() if option and key.rpartition(".")[2] == member]
            usual = [OptionName(plain), *([OptionName(plain[:-1])] if member in ("variants", "sources") else [])]
            for option in (*options, *usual):
                forms.setdefault((option.option, option.key), form)
    return forms


def in_python(text: str | None, forms: Mapping[tuple[str, str], str]) -> str | None:
    """Return a message with options replaced by arguments of a function; complete commands are not changed.

    Parameters
    ----------
    text : str, optional
        Such as ``--on-error stray=drop leaves them out``.
    forms : mapping
        See `option_names_of`.

    Examples
    --------
    >>> def evaluate(*, stray: str = "error", manifest: str | None = None): ...
    >>> forms = option_names_of(inspect.signature(evaluate), {})
    >>> in_python("--on-error stray=drop leaves them out; or --manifest MANIFEST", forms)
    "stray='drop' leaves them out; or manifest=MANIFEST"
    """

    def argument_of(match: re.Match[str]) -> str:
        option, key, value = match["option"], match["key"] or "", match["value"] or match["word"] or match["plain"]
        if form := forms.get((option, key)):
            return form.format(_literal(value)) if value else form.partition("=")[0] if "{}" in form else form
        form = forms.get((option, ""))
        return form.format(f"{{{key!r}: {_literal(value)}}}") if form else match[0]

    clauses = _HELP.sub(r"help(curation.evaluate.\1)", text or "").split("; ")
    return "; ".join(c if "curation " in c else _MENTIONED.sub(argument_of, c) for c in clauses) or text


def _literal(value: str) -> str:
    """Return a value in Python's notation: a number, a placeholder, or a quoted text."""
    return value if re.fullmatch(r"[\d.]+|[A-Z][A-Z_.]*", value) else repr(value)
