"""Every command that the code, its tables, its pages or a notebook names has a verb, options and keys that exist."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.shell import VERBS, parsers

ROOT = Path(__file__).parents[1]
FILES = [
    str(path.relative_to(ROOT))
    for pattern in ("curation/**/*", "notebooks/*.ipynb")
    for path in sorted(ROOT.glob(pattern))
    if path.suffix in (".py", ".toml", ".html", ".js", ".md", ".ipynb")
]
COMMAND = re.compile(r"(?<![\w./-])curation (?P<verb>[a-z][\w-]*)(?P<rest>(?:[^`;\n]|\\\n)*)")
OPTION = re.compile(r"(?<![\w-])--(?P<name>[a-z][a-z-]*)(?![\w-])(?: (?P<key>[\w-]+)=(?P<value>[a-z-]+(?![\w…{])))?")
SENTENCE_WORDS = {"again", "did", "does", "writes"}
"""Words behind `curation` where it is the package and not a command."""
PUBLISHED = {"renumber"}
"""Verbs that notes of published manifests name, which are never edited; the command line says what to use instead."""
OTHER_PROGRAMS = {
    "like-this",
    "no-like-this",
    "no-cache-dir",
    "force-reinstall",
    "no-deps",
    "upgrade",
    "curation-review",
}
"""Options of pip, a key of a page, and examples."""
STYLE = re.compile(r"var\(--[\w-]+|--[\w-]+:")
"""Properties of a style sheet."""
PARSERS = {parser.prog.removeprefix("curation "): parser for parser in parsers()}
COMMANDS = {name: parser._defaults["groups"] for name, parser in PARSERS.items()}
FLAGS = {name: set(parser._option_string_actions) for name, parser in PARSERS.items()}


def text_of(node: ast.AST) -> str | None:
    """Return the text of a string, of an f-string with X for each value, or of a sum of them; None of other nodes."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(str(value.value) if isinstance(value, ast.Constant) else "X" for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            texts = text_of(left), text_of(right)
            return None if texts == (None, None) else "".join("X" if text is None else text for text in texts)
    return None


def strings(value: Any) -> Iterator[str]:
    """Yield every text of a syntax tree, or of a TOML or JSON value."""
    if isinstance(value, ast.AST):
        text = text_of(value)
        if text is not None:
            yield text
        if not isinstance(value, ast.BinOp) or text is None:
            for child in ast.iter_child_nodes(value):
                yield from strings(child)
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from strings(member)
    elif isinstance(value, str):
        yield value


def texts_of(file: str) -> Iterator[str]:
    content = (ROOT / file).read_text(encoding="utf-8")
    match Path(file).suffix:
        case ".py":
            yield from strings(ast.parse(content))
        case ".toml":
            yield from strings(tomllib.loads(content))
        case ".ipynb":
            yield from ("".join(cell["source"]) for cell in json.loads(content)["cells"])
        case _:
            yield STYLE.sub("", content)


def problems(command: re.Match[str]) -> Iterator[str]:
    """Yield what does not exist of a named command."""
    verb, words = command["verb"], command["rest"].split()
    if verb not in VERBS:
        if verb not in SENTENCE_WORDS | PUBLISHED:
            yield f"verb {verb}"
        return
    below = sorted(name for name in COMMANDS if name.partition(" ")[0] == verb)
    if verb not in COMMANDS and words and re.fullmatch(r"[a-z_]{2,}", words[0]):
        below = [name for name in below if name == f"{verb} {words[0]}"]
        if not below:
            yield f"command {verb} {words[0]}"
    for option in OPTION.finditer(command["rest"].partition(", and ")[0]) if below else ():
        members = [one for name in below for one in COMMANDS[name].get(option["name"].replace("-", "_"), ())]
        if not any(f"--{option['name']}" in FLAGS[name] for name in below):
            yield f"option --{option['name']} of {verb}"
        elif option["key"] and not any(
            not one.key or (one.key == option["key"] and option["value"] in (one.choices or [option["value"]]))
            for one in members
        ):
            yield option[0]


@pytest.mark.parametrize("file", FILES)
def test_every_named_command_exists(file: str) -> None:
    texts = list(texts_of(file))
    wrong = [(command[0], what) for text in texts for command in COMMAND.finditer(text) for what in problems(command)]
    assert wrong == []
    # An option that is named alone is one of some command.
    if "database" not in file:
        named = {option["name"] for text in texts for option in OPTION.finditer(text)}
        assert {f"--{name}" for name in named - OTHER_PROGRAMS} <= set.union(*FLAGS.values())
