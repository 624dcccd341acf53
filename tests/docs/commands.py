"""Pages of the commands, generated from their parsers for the folder commands/ of the site."""

import argparse
import html
import json
import re
from collections.abc import Iterator

from curation.cli import whole_parser

_MOST_ON_A_PAGE = 10
_RANKED_LOW = "search:\n  boost: 0.2\n"
"""In a search, a page of options comes after the page that explains the measure."""
_MARK = re.compile(r"([*\[\]_])")


def _plain(text: str) -> str:
    """Return a text of the help as Markdown; code between backticks stays code."""
    parts = text.split("`")
    return "`".join(
        code if k % 2 else _MARK.sub(r"\\\1", html.escape(code, quote=False)) for k, code in enumerate(parts)
    )


def _page(parser: argparse.ArgumentParser, settings: str = "", apart: bool = False) -> str:
    """Return the page of a command; its title in the browser names the task."""
    summary = (parser.description or "").splitlines()[0].rstrip(".")
    title = f"title: {json.dumps(f'{parser.prog}: {summary}')}\n"
    return f"---\n{title}{settings}---\n\n" + "\n".join(_sections(parser, 1, apart))


def _below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = (one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    return dict(next(found, {}))


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield one line for each argument and option."""
    formatter = parser._get_formatter()
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            continue
        first, *keys = formatter._expand_help(action).split("\n") if action.help else ("",)
        yield f"* `{formatter._format_action_invocation(action)}`: {_plain(first)}"
        yield from (f"    * {_plain(key)}" for key in keys)


def _sections(parser: argparse.ArgumentParser, level: int, apart: bool = False) -> Iterator[str]:
    """Yield the lines of a command, then those of its subcommands, or links to their pages if `apart` is set."""
    below = _below(parser)
    yield from (f"{'#' * level} {parser.prog}", "", _plain(parser.description or ""), "")
    if not below:
        usage = " ".join(parser.format_usage().split()).removeprefix("usage: ")
        yield from ("```text", *_wrapped(usage), "```", "", *_options(parser), "")
    for name, one in below.items():
        if apart:
            page, summary = f"{parser.prog.split()[-1]}-{name}.md", _plain(one.description or "").splitlines()[0]
            yield f"* [`{one.prog}`]({page}): {summary}"
        else:
            yield from _sections(one, level + 1)


def _wrapped(usage: str, width: int = 75) -> Iterator[str]:
    """Yield the lines of a usage; brackets stay whole, and a required option stays with its value."""
    parts: list[str] = []
    depth = 0
    for word in usage.split():
        value = parts and re.fullmatch(r"-\S+", parts[-1]) and not word.startswith(("-", "[-"))
        if depth or value:
            parts[-1] += f" {word}"
        else:
            parts.append(word)
        depth += word.count("[") - word.count("]")
    line = ""
    for part in parts:
        if line and len(line) + len(part) + 1 > width:
            yield line
            line = "   "
        line = f"{line} {part}" if line else part
    yield line


def pages() -> dict[str, str]:
    """Return the page of each command by its name; each benchmark of ``evaluate`` has its own page."""
    made = {}
    for verb, parser in _below(whole_parser()).items():
        below = _below(parser)
        apart = len(below) > _MOST_ON_A_PAGE
        made[verb] = _page(parser, apart=apart)
        made |= {f"{verb}-{name}": _page(one, _RANKED_LOW) for name, one in below.items() if apart}
    return made
