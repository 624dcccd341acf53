"""A page for each verb, made from its parser: what the site shows below commands/. Nothing of it is committed."""

import argparse
import html
import re
from collections.abc import Iterator

from curation.cli import whole_parser

_MOST_ON_A_PAGE = 10
_FOUND_LATE = "---\nsearch:\n  boost: 0.2\n---\n\n"
"""A page of options is found after the page that explains the measure."""
_MARK = re.compile(r"([*\[\]_`])")


def _plain(text: str) -> str:
    """Return a text of the help as Markdown."""
    return _MARK.sub(r"\\\1", html.escape(text, quote=False))


def _below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = (one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    return dict(next(found, {}))


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield a line for each argument and option."""
    formatter = parser._get_formatter()
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            continue
        first, *keys = formatter._expand_help(action).split("\n") if action.help else ("",)
        yield f"* `{formatter._format_action_invocation(action)}`: {_plain(first)}"
        yield from (f"    * {_plain(key)}" for key in keys)


def _sections(parser: argparse.ArgumentParser, level: int, apart: bool = False) -> Iterator[str]:
    """Yield the lines of a command, then of those below it, or links to their own pages where these are `apart`."""
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
    line = ""
    for part in re.findall(r"(?:\[(?:[^\[\]]|\[[^\]]*\])*\]|[^\s\[\]])+", usage):
        if line and len(line) + len(part) + 1 > width:
            yield line
            line = "   "
        line = f"{line} {part}" if line else part
    yield line


def pages() -> dict[str, str]:
    """Return the page of each verb, by verb; each benchmark that is evaluated has one of its own."""
    made = {}
    for verb, parser in _below(whole_parser()).items():
        below = _below(parser)
        apart = len(below) > _MOST_ON_A_PAGE
        made[verb] = "\n".join(_sections(parser, 1, apart))
        made |= {f"{verb}-{name}": _FOUND_LATE + "\n".join(_sections(one, 1)) for name, one in below.items() if apart}
    return made
