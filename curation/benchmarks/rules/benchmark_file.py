"""A benchmark file: TOML that names a rule, its sources, its classes and its parameters.

A manifest holds the file as one JSON text without defaults, so that neither the spelling of a value nor a key that a
later version adds changes its digest.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from difflib import get_close_matches
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta

from curation.core.errors import CurationError, ProtocolError, UsageError
from curation.core.files import inside
from curation.core.json_text import decode_json
from curation.core.reading import read_plain, utf8_text
from curation.core.wording import did_you_mean
from curation.manifest.header import (
    ClassEntry,
    ClassRole,
    Digest,
    LabelView,
    Name,
    Order,
    Paper,
    PartName,
    PartRole,
    Taxonomy,
)
from curation.manifest.locate import load_manifest
from curation.review.decisions.guide import Guide
from curation.sources.datasets import users_name
from curation.sources.source_specs import SourceSlot

RuleName = Literal["wilderness", "tasks", "superclass", "hierarchy", "near-far", "lists", "split"]
"""Each rule is the module of this name beside this one, with `_` for `-` (see `rule_module`)."""
RULES: tuple[RuleName, ...] = get_args(RuleName)
EVALUATORS: dict[str, str] = {
    "wilderness": "elephant",
    "tasks": "owod",
    "superclass": "osod3",
    "hierarchy": "imagenet",
    "near-far": "findmeifyoucan",
}
"""The evaluation of each rule's manifests."""
ROLES: tuple[ClassRole, ...] = ("known", "negative", "unknown", "ignored")
ClassName = Annotated[str, Meta(min_length=1, max_length=200)]
ClassNames = tuple[ClassName, ...]
_DEEPEST = 50
_PAGE = "docs/own_benchmark.md shows a file of each rule"
_STORED, _UNREADABLE = "rule.parameters: file", "The benchmark file in the manifest cannot be read"
_EARLIER = {"tasks": 'a task file of an earlier form: it needs rule = "tasks", [sources] and [[classes.tasks]]'}
"""Hints for files of earlier forms, by a table that only they have."""
_NOT_INHERITED = ("name", "paper", "expect", "published", "cases")
Parameters = TypeVar("Parameters", bound=msgspec.Struct)


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table of a benchmark file."""


class SourceTable(_Table, frozen=True):
    """A table ``[sources.NAME]``.

    Attributes
    ----------
    role : str
        Key ``as``: the role of the source in the rule; by default the name of the table.
    dataset : str
        Namespace of the image ids; by default the second word of the benchmark's name.
    part : str
        Part of a dataset root, such as ``test``.
    usual_part : str
        Part of a root with several parts if `part` is empty; by default the role.
    required : bool
        Whether every build needs the source.
    meaning : str
        One line for messages.
    licence : str
        Licence of your data, such as CC-BY-4.0.
    exhaustive : bool
        Whether every object of every class is annotated on every image.
    """

    role: str = msgspec.field(default="", name="as")
    dataset: Annotated[str, Meta(pattern=r"^([a-z][a-z0-9_-]{0,31})?\Z")] = ""
    part: str = ""
    usual_part: str = ""
    required: bool = True
    meaning: str = ""
    licence: str = ""
    exhaustive: bool = False


class NamesFile(_Table, frozen=True):
    """Class names in a text file beside the benchmark file, one a line."""

    file: str


class TaskTable(_Table, frozen=True):
    """A table ``[[classes.tasks]]``: the classes that become known in a task."""

    name: PartName
    classes: Annotated[ClassNames, Meta(min_length=1)]


class Classes(_Table, frozen=True):
    """The table ``[classes]``.

    Attributes
    ----------
    known, negative, unknown, ignored : tuple of str, or NamesFile
        Class names as the sources have them, or groups.
    aliases : dict of str to tuple of str
        Other names of a class in the sources (``airplane`` of ``aeroplane``).
    groups : dict of str to tuple of str
        Groups of classes, or of other groups.
    absent : tuple of str
        Known classes that a source may lack.
    tasks : tuple of TaskTable
        Known classes by task, in the order of the tasks (rule ``tasks``).
    synsets : dict of str to str, or str
        WordNet synset of a class, such as ``cat.n.01``; or the name of a map in this package, such as ``coco``.
    """

    known: ClassNames | NamesFile = ()
    negative: ClassNames | NamesFile = ()
    unknown: ClassNames | NamesFile = ()
    ignored: ClassNames | NamesFile = ()
    aliases: dict[str, ClassNames] = {}
    groups: dict[str, ClassNames] = {}
    absent: ClassNames = ()
    tasks: tuple[TaskTable, ...] = ()
    synsets: dict[str, str] | str = {}

    def of(self, role: str) -> tuple[str, ...]:
        """Return the classes in a role, each once, in order; a group is replaced by its classes.

        Raises
        ------
        ProtocolError
            A group contains itself.
        """
        return self.leaves(getattr(self, role))

    def leaves(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the classes of some names as `of` does."""
        opened: set[str] = set()
        return tuple(dict.fromkeys(leaf for name in names for leaf in self._leaves(name, (), opened)))

    def _leaves(self, name: str, above: tuple[str, ...], opened: set[str]) -> Iterator[str]:
        """Yield the classes of a group, or the class itself; each group is opened once."""
        if name in above or len(above) > _DEEPEST:
            message = "A group contains itself" if name in above else "Groups are nested too deeply"
            raise ProtocolError(message, where="[classes.groups]", found=" > ".join((*above, name))[:300])
        if name not in self.groups:
            yield name
        elif name not in opened:
            opened.add(name)
            for member in self.groups[name]:
                yield from self._leaves(member, (*above, name), opened)


class ListedPart(_Table, frozen=True):
    """A table ``[[parts]]``: an id list, or one for each task, with ``{task}`` and ``{first}-{last}`` in texts.

    Attributes
    ----------
    name : str
        Name of the part.
    file : str
        ``FILE``, or ``FILE:FIRST-LAST`` for some of its lines.
    role : {"train", "val", "test", "finetune", "wilderness"}
        Use of its images; parts of different roles share none.
    sources : tuple of str
        Sources of its images; optional if the file has one source.
    selection : str
        A sentence on the selection of its images.
    view : str
        Name of a label view of the file; empty for the default view.
    of : tuple of int
        Numbers of the tasks; empty for a benchmark without tasks.
    subset_of : str
        The part that contains all of its images.
    order : {"listed", "code_point"}
        Order of the ids: that of the file.
    sha256 : str
        Digest of the file: ``sha256:`` and 64 digits.
    """

    name: str
    file: str
    role: PartRole
    sources: tuple[str, ...] = ()
    selection: str = ""
    view: str = ""
    of: tuple[int, ...] = ()
    subset_of: str = ""
    order: Order = "listed"
    sha256: Digest | Literal[""] = ""


class Expected(_Table, frozen=True):
    """A figure that the benchmark must have: ``"closed.images" = { value = 120, place = "our count" }``."""

    value: int
    place: str = ""
    because: str = ""


class BenchmarkFile(_Table, frozen=True):
    """Content of a benchmark file; its rule checks `parameters`.

    Attributes
    ----------
    rule : str
        Rule that selects the parts.
    name : str
        Name of the benchmark: lower-case words joined by ``-``, at most one ``/``. Families of this package are taken.
    sources : dict of str to SourceTable
        The raw data, by the names of ``--source NAME=PATH``.
    classes : Classes
        Names by role, and other names in the sources.
    parameters : dict
        Parameters of the rule.
    title : str
        Title; by default the name.
    taxonomy : str
        Kind of the unknown classes; by default that of the rule.
    notes : tuple of str
        Notes for readers of the manifest.
    views : dict of str to LabelView
        Treatment of the boxes of each role when a part is exported or scored.
    parts : tuple of ListedPart
        Rule ``lists``: the id lists.
    expect : dict of str to Expected
        Figures such as ``"closed.images"``, which are compared with those obtained.
    guide : Guide
        Instructions for reviewers: the question, the meaning of near, far and remove, and reasons.
    paper : Paper
        The publication, for data of its authors.
    """

    rule: RuleName
    name: Name
    sources: Annotated[dict[PartName, SourceTable], Meta(min_length=1)]
    classes: Classes = Classes()
    parameters: dict[str, Any] = {}
    title: str = ""
    taxonomy: Taxonomy | None = None
    notes: tuple[str, ...] = ()
    views: dict[PartName, LabelView] = {}
    parts: tuple[ListedPart, ...] = ()
    expect: dict[str, Expected] = {}
    guide: Guide | None = None
    paper: Paper | None = None

    @property
    def slots(self) -> tuple[SourceSlot, ...]:
        """The sources as slots of a build."""
        return tuple(
            SourceSlot(
                name,
                self.dataset(name),
                table.part,
                table.required,
                table.meaning or self.role(name),
                table.usual_part or self.role(name),
            )
            for name, table in self.sources.items()
        )

    def dataset(self, source: str) -> str:
        """Return the namespace of a source's image ids."""
        return self.sources[source].dataset or users_name(
            self.name.rpartition("/")[2].replace("-", "_").replace(".", "_")
        )

    def role(self, source: str) -> str:
        """Return the role of a source in the rule."""
        table = self.sources.get(source)
        return (table.role if table else "") or source

    def by_role(self, sources: Mapping[str, Any], need: str, expected: str, *uses: Collection[str]) -> dict[str, str]:
        """Return the name of the source in each role.

        Parameters
        ----------
        need, expected : str
            The need of the rule in words, and as text of a file.
        *uses : sequence of str
            The roles that the sources may have together.

        Raises
        ------
        ProtocolError
            Two sources have one role, or the sources have other roles.
        """
        roles = {self.role(name): name for name in sources}
        if len(roles) < len(sources) or {*roles} not in [{*use} for use in uses]:
            raise wrong_sources(self.rule, need, expected, [f"{name} as {self.role(name)}" for name in sources])
        return roles

    def parameters_as(self, form: type[Parameters]) -> Parameters:
        """Return ``[parameters]`` as the record of the rule."""
        return msgspec.convert(self.parameters, form, strict=False)


class WrittenFile(BenchmarkFile, frozen=True):
    """Content of a benchmark file before `extends` and cases are applied.

    Attributes
    ----------
    extends : str
        A file beside this one, a benchmark of this package (``elephant``, or ``NAME/CASE``), or the name of a manifest,
        whose keys apply where this file has none; but not its name, paper, expect, published and cases.
    cases : dict of str to dict
        Tables that replace keys of the file: ``curation build FILE.toml/KEY``.
    published : dict of str to dict
        Published lists by digest: ``curation build FILE.toml/KEY --source published-lists=FOLDER``.
    """

    extends: str = ""
    cases: dict[PartName, dict[str, Any]] = {}
    published: dict[PartName, dict[str, Any]] = {}


def wrong_sources(
    rule: str, need: str, expected: str, source_names: Iterable[str], kind: type[CurationError] = ProtocolError
) -> CurationError:
    """Return the error of sources that do not fit a rule, in a file or (as a `UsageError`) in options."""
    where = "[sources]" if kind is ProtocolError else None
    return kind(f"The rule {rule} needs {need}", where=where, expected=expected, found=", ".join(source_names)[:300])


def refuse_unused(benchmark: BenchmarkFile, unused: Mapping[str, str]) -> None:
    """Raise `ProtocolError` for a key that has no effect: the author of the file expects one.

    Parameters
    ----------
    unused : mapping of str to str
        Expected content or condition by key, such as ``classes.tasks``, or by table.
    """
    tables = msgspec.to_builtins(benchmark)
    for name, expected in unused.items():
        table, _, key = name.partition(".")
        if table in tables and (not key or key in tables[table]):
            message, where = "A key of the benchmark file has no effect", f"[{table}] {key}".rstrip()
            raise ProtocolError(message, where=where, expected=expected, hint="remove it")


def require_named(benchmark: BenchmarkFile, key: str, classes: Collection[str]) -> None:
    """Raise `ProtocolError` if a key of ``[classes]``, such as ``aliases``, names an unknown class."""
    names = getattr(benchmark.classes, key)
    table = f"[classes.{key}] " if isinstance(names, dict) else f"[classes] {key}: "
    for name in names:
        if name not in classes:
            raise ProtocolError(
                f"The key {key} names a class that the benchmark does not have",
                where=f"{table}{name}"[:200],
                expected=f"one of {', '.join(sorted(classes))}"[:300],
                hint=did_you_mean(name, classes, "remove it"),
            )


def file_schema(rule: str) -> dict[str, Any]:
    """Return the JSON Schema of the benchmark files of a rule, for editors that check TOML.

    Examples
    --------
    >>> sorted(file_schema("wilderness")["$defs"]["BenchmarkFile"]["required"])
    ['name', 'rule', 'sources']
    """
    form = rule_module(rule).PARAMETERS
    needed = any(field.required for field in msgspec.structs.fields(form))
    fields: list[Any] = [("rule", Literal[rule])]
    fields.append(("parameters", form) if needed else ("parameters", form, msgspec.field(default_factory=form)))
    record = msgspec.defstruct("BenchmarkFile", fields, bases=(WrittenFile,), kw_only=True, forbid_unknown_fields=True)
    schema = _numbers(msgspec.json.schema(record))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _numbers(value: Any) -> Any:
    """Return a schema in which a decimal may be a number, as in TOML; msgspec describes it as a text."""
    if isinstance(value, dict):
        if value.get("format") == "decimal":
            return {"type": ["number", "string"]}
        return {key: _numbers(each) for key, each in value.items()}
    return [_numbers(each) for each in value] if isinstance(value, list | tuple) else value


def rule_module(rule: str) -> Any:
    """Return the module of a rule.

    It has ``PARAMETERS`` (the record of its parameters), ``PARTS``, ``PAPER`` (None if it follows no paper), ``build``,
    ``start`` (the draft that `init` writes), ``USUAL_SOURCES`` (names of sources for `init`) and, for a rule in
    `EVALUATORS`, ``score_words`` (options of `evaluate MANIFEST`). A function ``resolved(parameters, folder)`` replaces
    references of a file outside the package by their content. A rule that replays decisions has ``read_recorded`` and
    ``read_decisions_file``.
    """
    return import_module(f"{__package__}.{rule.replace('-', '_')}")


def file_and_case(text: str) -> tuple[Path, str]:
    """Return the path of a benchmark file, and the case: KEY of ``FILE.toml/KEY``, or ``""``."""
    path = Path(text)
    is_case = path.suffix.lower() != ".toml" and path.parent.suffix.lower() == ".toml" and path.parent.is_file()
    return (path.parent, path.name) if is_case else (path, "")


def rule_of(text: str) -> str:
    """Return the rule of a benchmark file or of its case.

    Raises
    ------
    ProtocolError
        The file has no key ``rule``, or names another rule.
    """
    path, case = file_and_case(text)
    tables = _extended_tables(path, case)
    rule = tables.get("rule", "")
    if rule not in RULES:
        hints = [f'rule = "{near}"' for near in get_close_matches(str(rule), RULES, cutoff=0.4)]
        hints += [hint.format(path=path) for key, hint in _EARLIER.items() if key in tables]
        raise ProtocolError(
            "The benchmark file names no rule",
            where=f"{path}{_lines(path.read_text(encoding='utf-8'), 'rule', ())}",
            expected=f"rule = one of {', '.join(RULES)}",
            found=repr(rule)[:80] if rule else "no key rule",
            hint=[*hints, _PAGE][0],
        )
    return str(rule)


def read_benchmark_file(text: str) -> str:
    """Return a benchmark file in the form that a manifest stores: JSON without defaults, class lists included.

    Parameters
    ----------
    text : str
        Path of the file, or ``PATH/KEY`` for a case; or a text in the stored form.

    Raises
    ------
    ProtocolError
        A key, a type or a value is wrong; the message names its line, the key and the nearest key.
    """
    if text.startswith("{"):
        benchmark = stated_in(text)
        try:
            settings = benchmark.parameters_as(rule_module(benchmark.rule).PARAMETERS)
        except msgspec.ValidationError as error:
            raise ProtocolError(_UNREADABLE, where=_STORED, found=str(error)[:200]) from None
        lists = [getattr(benchmark.classes, role) for role in ROLES]
        if any(isinstance(names, NamesFile) for names in lists) or isinstance(getattr(settings, "keep", {}), str):
            raise ProtocolError("A manifest must contain class names and ids, not names of files", where=_STORED)
        return _as_text(benchmark)
    path, case = file_and_case(text)
    tables = _extended_tables(path, case)
    try:
        benchmark = msgspec.convert(tables, BenchmarkFile)
    except msgspec.ValidationError as error:
        raise _explained(error, path) from None
    module = rule_module(benchmark.rule)
    form = module.PARAMETERS
    try:
        settings = benchmark.parameters_as(form)
    except msgspec.ValidationError as error:
        raise _explained(error, path, form) from None
    settings = module.resolved(settings, path.parent) if hasattr(module, "resolved") else settings
    return _stored(benchmark, settings)


def parameter_text(benchmark: BenchmarkFile, form: type[Parameters]) -> str:
    """Return a benchmark in the form that a manifest stores, with checked parameters."""
    return _stored(benchmark, benchmark.parameters_as(form))


def _stored(benchmark: BenchmarkFile, settings: msgspec.Struct) -> str:
    """Return a benchmark in the stored form: parameters in normal form, without those at their default."""
    usual = {
        field.name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        for field in msgspec.structs.fields(settings)
    }
    values = {name: getattr(settings, name) for name in sorted(benchmark.parameters)}
    written = {name: _plain(value) for name, value in values.items() if value != usual[name]}
    return _as_text(msgspec.structs.replace(benchmark, parameters=written))


def stated_in(text: str) -> BenchmarkFile:
    """Return the benchmark file that a manifest stores as text."""
    return decode_json(text.encode(), BenchmarkFile, ProtocolError, _UNREADABLE, where=_STORED)


def slots_of_file(parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
    """Return the sources of the benchmark file among the parameters of a manifest."""
    return stated_in(parameters["file"]).slots


def class_entries(benchmark: BenchmarkFile, unknown: tuple[str, ...] = ()) -> tuple[ClassEntry, ...]:
    """Return the classes of a benchmark with their roles: known ones with indices from 1, in the order of the file.

    Parameters
    ----------
    unknown : tuple of str
        Further unknown classes.

    Raises
    ------
    ProtocolError
        No class is known, or a class has two roles.
    """
    by_role: dict[ClassRole, tuple[str, ...]] = {role: benchmark.classes.of(role) for role in ROLES}
    names = [name for listed in by_role.values() for name in listed]
    if not by_role["known"]:
        raise ProtocolError("No class is known", where="[classes]", expected='known = ["bolt", "nut"]')
    if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ProtocolError("A class has two roles", where="[classes]", found=", ".join(repeated[:3]))
    by_role["unknown"] = (*by_role["unknown"], *(name for name in unknown if name not in names))
    return entries_by_role(by_role, benchmark.classes.aliases, 1)


def entries_by_role(
    names: Mapping[ClassRole, Iterable[str]], aliases: Mapping[str, tuple[str, ...]] = {}, first: int = 0
) -> tuple[ClassEntry, ...]:
    """Return classes with their roles: known ones with indices from `first`, others with -1."""
    return tuple(
        ClassEntry(name=name, role=role, index=index if role == "known" else -1, aliases=aliases.get(name, ()))
        for role, listed in names.items()
        for index, name in enumerate(listed, first)
    )


def decimal_text(value: Decimal) -> str:
    """Return a decimal in its shortest form, without an exponent: ``0.5`` of ``0.50``."""
    return f"{value.normalize():f}"


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a benchmark file; raise `ProtocolError` for invalid TOML."""
    data = read_plain(path, kind="benchmark file")
    try:
        return tomllib.loads(data.decode("utf-8"))
    # ValueError: of TOML, of UTF-8, and of a number with thousands of digits.
    except (ValueError, RecursionError) as problem:
        message, expected = "The benchmark file is not TOML", "TOML with rule, name, [sources] and [classes]"
        raise ProtocolError(message, where=str(path), expected=expected, found=str(problem)[:300]) from None


def _extended_tables(path: Path, case: str, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Return the tables of a file merged into those that it extends, and a case merged into both; read class lists."""
    tables = read_toml(path)
    _read_lists(tables, path.parent)
    if "extends" in tables:
        tables = _merged(_extended(tables.pop("extends"), path, (*above, path.resolve())), tables)
    cases = tables.pop("cases", {})
    tables.pop("published", None)
    if not case:
        return tables
    if not isinstance(cases, dict) or not isinstance(cases.get(case), dict):
        names = [f"{path}/{name}" for name in cases] if isinstance(cases, dict) else []
        raise ProtocolError(
            "The benchmark file has no such case",
            where=f"{path}: [cases.{case}]"[:300],
            expected=", ".join(names)[:300] or "a table [cases.KEY]",
            hint=did_you_mean(f"{path}/{case}", names),
        )
    of_case = dict(cases[case])
    if nested := [key for key in ("extends", "cases") if key in of_case]:
        raise ProtocolError("A case cannot have this key", where=f"{path}: [cases.{case}] {nested[0]}")
    _read_lists(of_case, path.parent)
    name = f"{tables.get('name', '')}-{case}"
    return {"name": name} | _merged(_inherited(tables), of_case)


def _extended(target: Any, path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    """Return the tables that a file inherits from another file, or from the file in a manifest."""
    where = f"{path}: extends"
    expected = 'a file beside this one, such as "parts.toml", a benchmark of a paper, or a manifest of a benchmark file'
    if not isinstance(target, str) or not target or len(above) > _DEEPEST:
        raise ProtocolError("Invalid value of extends", where=where, expected=expected, found=repr(target)[:80])
    other, case = file_and_case(str(path.parent / target))
    if other.suffix.lower() == ".toml":
        if (base := inside(path.parent, target.removesuffix(f"/{case}"))).resolve() in above:
            raise ProtocolError("A benchmark file extends itself", where=where, found=target[:80])
        tables = _extended_tables(base, case, above)
    elif packaged := _packaged(target):
        # The title names the paper, but the lists are not those of the paper.
        tables = packaged | {"title": ""}
    else:
        text = load_manifest(target).header.rule.parameters.get("file", "")
        tables = msgspec.to_builtins(stated_in(text)) if isinstance(text, str) and text.startswith("{") else {}
        if not tables:
            message = "The manifest contains no benchmark file"
            raise ProtocolError(message, where=where, expected=expected, found=target[:80])
    return _inherited(tables)


def _inherited(tables: Mapping[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in tables.items() if key not in _NOT_INHERITED}


def _packaged(target: str) -> dict[str, Any]:
    """Return the tables that a file inherits from a packaged benchmark or its case; empty if it names neither."""
    name, _, case = target.partition("/")
    file = files("curation.benchmarks").joinpath(f"{name}.toml")
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or not file.is_file():
        return {}
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    cases = tables.get("cases", {})
    if "rule" not in tables or (case and case not in cases):
        return {}
    if not case and "sources" not in tables:
        expected = ", ".join(f"{name}/{key}" for key in cases)
        raise ProtocolError("Name a case of the benchmark", where="extends", expected=expected, found=target)
    keys = {field.encode_name for field in msgspec.structs.fields(BenchmarkFile)}
    return _merged({key: each for key, each in tables.items() if key in keys}, cases.get(case, {}))


def packaged_file(target: str, **parameters: Any) -> BenchmarkFile:
    """Return a benchmark of this package, or its case ``NAME/CASE``, as a benchmark file with these parameters."""
    tables = _merged(_packaged(target), {"name": target, "parameters": parameters})
    return msgspec.convert(tables, BenchmarkFile)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables with keys replaced or added by those of others; nested tables are merged too."""
    merged = dict(below)
    for key, value in above.items():
        before = merged.get(key)
        merged[key] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


def _read_lists(tables: dict[str, Any], folder: Path) -> None:
    """Replace each ``{ file = "known.txt" }`` among the classes by the names in the file."""
    classes = tables.get("classes")
    if not isinstance(classes, dict):
        return
    for role in ROLES:
        listed = classes.get(role)
        if isinstance(listed, dict) and [*listed] == ["file"] and isinstance(listed["file"], str):
            path = inside(folder, listed["file"])
            data = read_plain(path, kind="list of classes")
            lines = utf8_text(data, str(path), ProtocolError, "The list of classes is not UTF-8").splitlines()
            classes[role] = list(filter(None, map(str.strip, lines)))


def _explained(error: msgspec.ValidationError, path: Path, form: type[msgspec.Struct] | None = None) -> ProtocolError:
    """Return the error of a key or a value, with its line, its table and the nearest key.

    `form` is the record of the parameters if the error is in them.
    """
    table = "parameters" if form else ""
    message, _, json_path = str(error).partition(" - at `$")
    names = [
        name for name in re.split(r"[.\[\]`]+", f"{table}.{json_path}") if name and name != "..." and not name.isdigit()
    ]
    unknown = re.search(r"(?:unknown|required) field `(.+?)`", message)
    key = unknown[1] if unknown else names.pop() if names else ""
    if form and not unknown and (field := message.partition(" ")[0]) in form.__struct_fields__:
        # A rule that compares values names the key first.
        names, key = [table], field
    is_unknown = "unknown" in message
    record = form or _TABLES.get(".".join(names), WrittenFile)
    keys = [field.encode_name for field in msgspec.structs.fields(record)]
    text = utf8_text(read_plain(path), str(path), ProtocolError, "The benchmark file is not UTF-8")
    tables = [at for at in _TABLES if at in ("classes", "sources") or f"[{at}" in text] if is_unknown else []
    elsewhere = [f"{key} in [{at}]" for at in tables if key in _TABLES[at].__struct_fields__]
    value, near = None, None
    if "enum" in message and (words := _choices(get_type_hints(record).get(key))):
        message, value = f"one of {', '.join(words)}", message.partition("value ")[2]
        near = did_you_mean(value, words)
    elif "decimal string" in message:
        message = "a number"
    elif kind := re.fullmatch(r"Expected `([^`]+)`, got `([^`]+)`", message):
        message, value = (" or ".join(_KINDS.get(word, word) for word in each.split(" | ")) for each in kind.groups())
        near = 'quote a name with a dot: "a.b" = ["c"]' if value == "a table" else None
    if "matching regex" in message:
        forms = {
            "name": "lower-case letters, digits, . and _, joined by - and at most one /",
            "cut": "whole, halves, sixths, or a pattern of the letters K, N and U, such as KKNU",
            "sha256": "sha256: and 64 digits of 0 to 9 and a to f",
        }
        message = forms.get(key, "a to z, 0 to 9, _")
    problem = "an unknown key" if is_unknown else "no such key" if unknown else "a wrong value"
    where = f"{path}{_lines(text, key, names)}" + (f", table [{'.'.join(names)}]" if names else "")
    return ProtocolError(
        f"The benchmark file has {problem}: {key}",
        where=where,
        expected=f"one of {', '.join(keys)}"[:300] if is_unknown else message.removeprefix("Expected "),
        found=value,
        hint=f"did you mean {elsewhere[0]}?"
        if elsewhere
        else near or did_you_mean(key, keys if is_unknown else (), _PAGE),
    )


def _lines(text: str, key: str, tables: Sequence[str]) -> str:
    """Return ``, line 7`` of a key in a benchmark file; if the table has a header, lines of the table come first."""
    lines = text.splitlines()
    written = re.compile(rf"(?:^|[\s{{,\[.\"']){re.escape(key)}[\"']?\s*[=\].]")
    numbers = [number for number, line in enumerate(lines, 1) if written.search(line)]
    headers = [number for number, line in enumerate(lines, 1) if line.lstrip().startswith("[")]
    first = next((each for each in headers if lines[each - 1].strip() == f"[{'.'.join(tables)}]"), 0)
    last = next((each for each in headers if each > first), len(lines) + 1) if first else 0
    if inside_table := [number for number in numbers if first <= number < last]:
        numbers = inside_table
    if len(numbers) < 2:
        return f", line {numbers[0]}" if numbers else ""
    return f", one of the lines {', '.join(map(str, numbers[:5]))}"


@contextmanager
def located(path: Path) -> Iterator[None]:
    """Add file and line to an error that names a table, class or source; rules know only the stored text."""
    try:
        yield
    except (ProtocolError, UsageError) as error:
        where, text = error.where or "", path.read_text(encoding="utf-8")
        if table := re.match(r"\[([\w.-]+)\] ?([^:,;]*)", where):
            *tables, last = table[1].split(".")
            key, tables = (table[2], [*tables, last]) if table[2] else (last, tables)
            error.where = f"{path}{_lines(text, key, tables)}: {where}"
        elif name := re.search(r"\bclass (.+)$", where):
            written = re.compile(rf"[\"']{re.escape(name[1])}[\"']|^\s*{re.escape(name[1])}\s*=")
            lines = (f", line {number}" for number, line in enumerate(text.splitlines(), 1) if written.search(line))
            error.where = f"{path}{next(lines, '')}: {where}"
        elif where.startswith("--source "):
            error.where = f"{path}{_lines(text, 'sources', ())}: {where}"
        raise


def _plain(value: Any) -> Any:
    """Return a value of a record in its JSON form: decimals as texts in their shortest form."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return decimal_text(value) if isinstance(value, Decimal) else value


def _as_text(benchmark: BenchmarkFile) -> str:
    # Class names are keys here, in any script; canonical JSON allows only ASCII keys.
    return json.dumps(msgspec.to_builtins(benchmark), sort_keys=True, separators=(",", ":"))


def _choices(kind: Any) -> list[str]:
    """Return the allowed texts of a key: those of every `Literal` in its type."""
    return [text for part in get_args(kind) for text in ([part] if isinstance(part, str) else _choices(part))]


_TABLES: Mapping[str, type[msgspec.Struct]] = {
    "classes": Classes,
    "classes.tasks": TaskTable,
    "sources": SourceTable,
    "parts": ListedPart,
    "expect": Expected,
    "guide": Guide,
}
_KINDS = {
    "array": "a list",
    "object": "a table",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}
