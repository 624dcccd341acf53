"""Names of options: one word an idea over all commands.

A parameter of a function is an option with the same name. Those below have another name on the command line, or share
an option with others as one of its keys: ``--on-error boxes=drop`` gives the parameter ``bad_boxes``. Python keeps the
parameters as they are, and `in_python` says what a message calls by its option.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple


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
names edits setting betas fbeta_formula fbeta_ratios recalls level_counts difficult similar thetas
t_star fpr official_compat embedding precision random_weights template batch threads batch_size n_train sample
radius plant weighting restarts exemplars iou unknown unknown_id id_form
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
    "evaluate.boxes": OptionName("set", "boxes"),
    # One word an idea.
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


def name_of(function: str, parameter: str) -> OptionName | None:
    """Return what a parameter of a function is called on the command line; None where it is none of its options."""
    return NAMES.get(f"{function}.{parameter}", NAMES.get(parameter, OptionName(parameter.replace("_", "-"))))


def renamed(option: str, known: Collection[str]) -> str | None:
    """Return what an option of an earlier version, without dashes, is now, among those of a command.

    Parameters
    ----------
    known : collection of str
        ``--option``, and ``--option key`` of each key.
    """
    names = [
        f"--{now.option}" + (f" {now.key}=…" if now.key else "")
        for name, now in NAMES.items()
        if name.rpartition(".")[2].replace("_", "-") == option.removeprefix("no-")
        and now is not None
        and f"--{now.option} {now.key}".rstrip() in known
    ]
    return " or ".join(dict.fromkeys(names)) or None


_MENTIONED = re.compile(
    r"--(?P<option>[a-z][a-z-]*)"
    r"(?: (?P<key>[A-Za-z][\w@-]*)=(?P<of_key>[^\s,;)]+)"
    r"| (?!(?:and|or|with|without|beside|requires|needs|takes|reads|names)\b)"
    r"(?P<value>[^\s,;:=)]+)(?P<end>(?=[,;:)]|\Z| --| or ))?)?"
)
_COMMAND = re.compile(r"curation [a-z][^;]*")
_HELP = re.compile(r"curation evaluate (\w+) --help")


def in_python(text: str, signature: inspect.Signature, annotations: Mapping[str, Any]) -> str:
    """Return a message in which options of the command line are the arguments of a function; commands stay.

    Parameters
    ----------
    text : str
        Such as ``--on-error stray=drop leaves them out``.
    signature : inspect.Signature
    annotations : mapping of str to type
        Of its parameters, with what they are annotated with.

    Examples
    --------
    >>> def evaluate(*, stray: str = "error", manifest: str | None = None): ...
    >>> shell = "--on-error stray=drop leaves them out; or --manifest MANIFEST"
    >>> in_python(shell, inspect.signature(evaluate), {})
    "stray='drop' leaves them out; or manifest=MANIFEST"
    """
    arguments = dict[tuple[str, str], _Argument]()
    for name, parameter in signature.parameters.items():
        if name == "variant" and "variants" in signature.parameters:
            continue
        kind = annotations.get(name, parameter.annotation)
        for argument in _arguments(name, kind):
            for called in _called(argument.name, argument.kind):
                arguments.setdefault((called.option, called.key), argument._replace(words=called.words))
    commands = [match.span() for match in _COMMAND.finditer(text)]

    def argument_of(match: re.Match[str]) -> str:
        if any(start <= match.start() < end for start, end in commands):
            return match[0]
        written = _written(match, arguments)
        return f"{written}," if written != match[0] and text[match.end() :].startswith(" --") else written

    return _MENTIONED.sub(argument_of, _HELP.sub(r"help(curation.evaluate.\1)", text))


class _Argument(NamedTuple):
    """An argument of a function, or a field of a record that is one."""

    name: str
    kind: Any
    record: str = "{}"
    words: tuple[str, str] = ("", "")


def _arguments(name: str, kind: Any) -> list[_Argument]:
    for record in (kind, *typing.get_args(kind)):
        fields = dataclasses.fields(record) if dataclasses.is_dataclass(record) else ()
        if fields and all(field.kw_only for field in fields):
            form = f"{name}={getattr(record, '__name__', name)}({{}})"
            return [_Argument(field.name, field.type, form) for field in fields]
    return [_Argument(name, kind)]


def _called(parameter: str, kind: Any) -> list[OptionName]:
    """Return what a parameter is called on the command line, by whatever function."""
    options = [extra for extra in typing.get_args(kind)[1:] if isinstance(extra, str) and extra.startswith("--")]
    listed = [option for name, option in NAMES.items() if parameter == name.rpartition(".")[2]]
    plain = parameter.replace("_", "-")
    usual = [plain, plain.removesuffix("s")] if parameter in ("variants", "sources") else [plain]
    names = [text.partition(" ")[0].removeprefix("--") for text in options] or usual
    return [*(option for option in listed if option is not None), *map(OptionName, names)]


def _written(match: re.Match[str], arguments: Mapping[tuple[str, str], _Argument]) -> str:
    """Return an option with its value as an argument of a call; unchanged if the call lacks the argument."""
    option, key, of_key, value = match["option"], match["key"] or "", match["of_key"], match["value"]
    if key and (argument := arguments.get((option, key))):
        is_flag = of_key in argument.words
        text = str(of_key == argument.words[1]) if is_flag else _literal(of_key)
        return argument.record.format(f"{argument.name}={text}")
    argument = arguments.get((option, ""))
    if argument is None:
        return match[0]
    if key:
        return argument.record.format(f"{argument.name}={{{key!r}: {_literal(of_key)}}}")
    if argument.kind in (bool, "bool"):
        return argument.record.format(f"{argument.name}=True") + (f" {value}" if value else "")
    choices = {word for choice in (argument.kind, *typing.get_args(argument.kind)) for word in typing.get_args(choice)}
    if value and (value.isupper() or value.isdigit() or value in choices or match["end"] is not None):
        return argument.record.format(f"{argument.name}={_literal(value)}")
    return argument.name + (f" {value}" if value else "")


def _literal(value: str) -> str:
    """Return a value as Python has it: a number, a name that stands for something, or a text in quotes."""
    return value if value.isdigit() or value == "..." or re.fullmatch(r"[A-Z][A-Z_.]*", value) else repr(value)
