"""The page of all commands and options, from the parser: ``python -m tests.docs.command_pages``."""

import argparse
import os
import re
from collections.abc import Iterator
from pathlib import Path

from curation.cli import GROUPS, whole_parser

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
_SHARED = ("help", "json", "force")


def below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the sub-commands of a parser, by all of their names."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def leaves(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield every command below a verb with its names."""
    commands = below(parser)
    if not commands:
        yield name, parser
    for command in dict.fromkeys(commands.values()):
        names = [one for one, each in commands.items() if each is command]
        yield from leaves(command, f"{name} {' | '.join(names)}")


def cell(text: str) -> str:
    """Return a text of the help as a table cell."""
    return re.sub(r"(?<![\\|])\|", r"\\|", text.replace("%%", "%").replace("<", "&lt;")).replace("\n", "<br>")


def told(action: argparse.Action) -> str:
    """Return an option or argument with what stands for its value."""
    value = "" if action.nargs == 0 else str(action.metavar or "|".join(map(str, action.choices or ())) or action.dest)
    names = ", ".join(action.option_strings) or str(action.metavar or action.dest.upper())
    return f"{names} {value}".strip() if action.option_strings else names


def page() -> str:
    """Return the page."""
    os.environ["COLUMNS"] = "100"
    verbs = below(whole_parser())
    lines = [
        "# Commands and options",
        "",
        "Made from the parser by `python -m tests.docs.command_pages`. Every command also takes `--help`, `--json`",
        "(print the answer as JSON) and, where it writes, `--force` (replace files that curation did not write).",
        "",
    ]
    words: dict[str, list[str]] = {}
    for title, names in GROUPS.items():
        lines += [f"## {title}", ""]
        for name, command in [one for verb in names for one in leaves(verbs[verb], verb)]:
            lines += [f"### {name}", "", (command.description or "").replace("%%", "%"), ""]
            lines += ["| argument or option | meaning |", "|---|---|"]
            for action in command._actions:
                if action.dest not in _SHARED:
                    lines.append(f"| `{cell(told(action))}` | {cell(action.help or '')} |")
                    for one in action.option_strings:
                        words.setdefault(one.lstrip("-"), []).append(name)
            lines.append("")
    lines += ["## Options by name", "", "| option | commands |", "|---|---|"]
    lines += [f"| {one} (`--{one}`) | {cell(', '.join(words[one]))} |" for one in sorted(words) if len(one) > 1]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
