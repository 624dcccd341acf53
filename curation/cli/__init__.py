"""The command line: one module a verb, loaded only when that verb is used."""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import chain, takewhile, zip_longest
from keyword import iskeyword
from pathlib import Path
from typing import Any, NoReturn

from curation.cli import outputs
from curation.cli.offered import help_lines, offered, verb_module
from curation.cli.option_names import RETIRED, Help, Once
from curation.core import edge
from curation.core.entry_points import loading
from curation.core.errors import CurationError, UsageError
from curation.core.option_names import renamed
from curation.core.text_table import printable
from curation.version import __version__

COMMAND = "command"
"""Where a parsed command line keeps the function that it calls, if that was made from a signature."""

GROUPS: dict[str, dict[str, str]] = {
    "Lists": {
        "list": "benchmarks with their sources, and the available manifests",
        "init": "write a first task file from your own annotations",
        "build": "make a manifest from raw datasets",
        "import": "complete a manifest from the lists that authors published",
        "show": "print a manifest",
        "verify": "check a manifest against digests, sources or an authors' list",
        "export": "write parts as COCO, VOC, YOLO, id lists or the authors' files",
    },
    "Lists of others": {},
    "Signals": {
        "hierarchy": "class hierarchies: show, find, similarity, dropped, related",
        "similarity": "images that look alike: embed, neighbors, duplicates, leaks",
        "cut": "group classes that rarely occur together",
    },
    "Reviewers": {"review": "propose, start, status, export, summary, apply"},
    "Scores": {
        "evaluate": "score predictions by the rules of a benchmark",
        "leaderboard": "rank the results of several methods where they are comparable",
    },
    "Hub": {
        "publish": "publish manifests as a dataset repository",
        "pull": "download a publication and check every file",
    },
}
"""Every verb of this package outside its extensions and what it does, in the groups of the help."""
OWN_VERBS = frozenset(verb for verbs in GROUPS.values() for verb in verbs)

GONE = {
    "audits": "audit FOLDER --each",
    "presence": "inspect FILES --presence DIR",
    "renumber": "inspect FILE --renumber FILE",
    "completion": "--completion SHELL",
    "propose": "review propose",
    "decisions": "review summary",
    "apply": "review apply",
    "embed": "similarity embed",
    "neighbors": "similarity neighbors",
    "duplicates": "similarity duplicates",
    "leaks": "similarity leaks",
    "hierarchy kin": "hierarchy related",
}
"""Verbs and commands of earlier versions, and what they are now."""


def groups() -> dict[str, dict[str, str]]:
    """Return every verb and what it does, in the groups of the help; offered verbs follow those of this package."""
    verbs = {title: dict(lines) for title, lines in GROUPS.items()}
    for verb, (title, summary) in help_lines().items():
        if verb not in OWN_VERBS:
            verbs.setdefault(title, {})[verb] = summary
    return verbs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status (see `curation.core.edge.outcome`)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    verb, command = [*(word for word in given if not word.startswith("-")), "", ""][:2]

    def work() -> int:
        parser = _parser(verb, command, each="--each" in given)
        _require_known(parser, given)
        options = parser.parse_args(given)
        if options.verb is None:
            parser.print_help()
            return 2
        with outputs.guarded(parser, options):
            return _run(options)

    options_alone = takewhile(lambda word: word != "--", given)
    as_json = any(word.partition("=")[0] == "--json" for word in options_alone)
    return edge.outcome(work, lambda error: _report(error, as_json=as_json))


def _require_known(parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
    """Raise `WrongWordsError` for a verb, command or option that there is not, and say what to type instead."""
    words = list(takewhile(lambda word: not word.startswith("-"), given))
    for old in (" ".join(words[:2]), *words[:1]):
        if old in GONE:
            command = f"curation {GONE[old]}"
            raise WrongWordsError(f"`curation {old}` is now `{command}`", where="curation", found=old, hint=command)
    for word in words:
        below = next((action for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None)
        if below is None:
            break
        if word not in below.choices:
            raise _unknown(f"There is no `{parser.prog} {word[:80]}`", word, below.choices, parser)
        parser = below.choices[word]
    if words[:1] == ["build"] and len(words) > 1 and not Path(words[1]).exists():
        from curation.benchmarks.registry import benchmarks
        from curation.manifest.locate import manifest_folders

        near = [] if words[1] in benchmarks() else get_close_matches(words[1], benchmarks(), 1)
        # A manifest without lists is built too: by NAME or NAME@VERSION.
        if near and not any(words[1] in (name, name.rpartition("@")[0]) for name in manifest_folders()):
            raise _unknown(f"There is no benchmark {words[1]!r}", words[1], near, parser)
    known = parser._option_string_actions
    typed = given[: given.index("--")] if "--" in given else given
    for word, following in zip_longest(typed, typed[1:], fillvalue=""):
        option, _, value = word.partition("=")
        keyed = f"{option} {(value or following).partition('=')[0]}"
        if advice := RETIRED.get(keyed.removeprefix("--")):
            what = f"{keyed} of `{parser.prog}` is gone: {advice}"
            raise WrongWordsError(what, where=parser.prog, found=keyed, hint=advice)
        # What is missing beside --json is said by the parser.
        if option.startswith("--") and option not in known and option != "--json":
            called = f"{option[:80]} of `{parser.prog}`"
            if now := renamed(option[2:], known):
                raise WrongWordsError(f"{called} is now {now}", where=parser.prog, found=option[:80], hint=now)
            if advice := RETIRED.get(option[2:]):
                raise WrongWordsError(f"{called} is gone: {advice}", where=parser.prog, found=option[:80], hint=advice)
            raise _unknown(f"{called} does not exist", option, known, parser)


def _unknown(what: str, word: str, known: Iterable[str], parser: argparse.ArgumentParser) -> WrongWordsError:
    """Return the error about a word that is none of some known ones, with the nearest of them."""
    near = get_close_matches(word, known, 1)
    answer = f"; did you mean {near[0]}?" if near else f": see `{parser.prog} --help`"
    return WrongWordsError(
        f"{what}{answer}",
        where=parser.prog,
        expected=", ".join(known)[:400],
        found=word[:80],
        hint=near[0] if near else f"{parser.prog} --help",
    )


class Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong: the usage of a verb with many options hides it.

    An option of one value is given once: of two values, none is passed over silently.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.register("action", None, Once)

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong."""
        parts = next((found.groupdict() for form in _REFUSALS if (found := form.search(message))), {})
        hint = f"{self.prog} --help"
        raise WrongWordsError(f"{message}: see `{hint}`", where=self.prog, hint=hint, **parts)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse words that are left over where they are met: the parser of all commands would name its own help."""
        options, strange = super().parse_known_args(args, namespace)
        return (options, strange) if not strange else self.error(f"unrecognized arguments: {' '.join(strange)}")


_REFUSALS = (
    re.compile(r"invalid choice: (?P<found>.*) \(choose from (?P<expected>.*)\)", re.DOTALL),
    re.compile(r"invalid (?P<expected>\w+) value: (?P<found>.*)", re.DOTALL),
    re.compile(r"the following arguments are required: (?P<expected>.*)"),
    re.compile(r"unrecognized arguments: (?P<found>.*)", re.DOTALL),
    re.compile(r"expected (?P<expected>\w+ argument.*)"),
    re.compile(r"is given twice: (?P<found>.*)", re.DOTALL),
    re.compile(r": (?P<found>'.*'): expected (?P<expected>.*)", re.DOTALL),
)
"""What `argparse` says of a word: what it found, and what would have been right."""


class WrongWordsError(UsageError):
    """A command line that no parser takes; as text, one line."""

    def __str__(self) -> str:
        return printable(self.what)


def _run(options: argparse.Namespace) -> int:
    """Call what the command line names, print its answer, and return the exit status."""
    from curation.cli.output import Answer, emit, warnings_shown

    if not hasattr(options, COMMAND):
        with warnings_shown():
            written: int = options.run(options)
        return written
    from curation.cli.signature import call

    with warnings_shown():
        answer: Answer = call(options.command, options)
    lines = chain(answer.lines, (f"wrote {path}" for path in answer.written))
    leads_on = options.verb in ("verify", "audit", "export") and not getattr(options, "quiet", False)
    if leads_on and answer.status == 0 and not options.json:
        from curation.cli.next_steps import following

        lines = chain(lines, following(options))
    emit(answer.data, lines, as_json=options.json)
    if answer.then is not None:
        answer.then()
    return answer.status


def _parser(verb: str | None, command: str = "", *, every: bool = False, each: bool = False) -> argparse.ArgumentParser:
    """Return the parser; only the module of the verb, and of the command in use, is imported: help stays instant."""
    names = sorted(OWN_VERBS | offered().keys())
    is_listed = every or verb not in names
    verbs = groups() if is_listed else {}
    listed = "\n".join(
        f"{title}\n" + "\n".join(f"  {name:<13}{summary}" for name, summary in lines.items())
        for title, lines in verbs.items()
    )
    summaries = {name: summary for lines in (verbs or GROUPS).values() for name, summary in lines.items()}
    parser = Parser(
        prog="curation",
        description="Open-set evaluation data you can trust.",
        epilog=f"{listed}\n\n`curation VERB --help` shows the options of a verb.",
        formatter_class=_TopHelp,
        usage="curation [-h] [--version] [--completion SHELL] VERB ...",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"curation {__version__}")
    parser.add_argument(
        "--completion",
        action=_Completion,
        choices=("bash", "zsh", "tcsh"),
        metavar="SHELL",
        help="print the completion of bash, zsh or tcsh",
    )
    below = parser.add_subparsers(dest="verb", metavar="VERB", help="what to do", prog="curation")
    for name in summaries if is_listed else names:
        module = _module(name, optional=every) if every or name == verb else None
        summary = str(summaries.get(name) or getattr(module, "SUMMARY", name))
        subparser = below.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=Help,
            allow_abbrev=False,
        )
        if module is not None:
            try:
                with loading(module.__name__, f"The command `curation {name}`"):
                    _declare(subparser, module, command, each=each)
            except UsageError:
                # Completion and the page of all commands have what can be used.
                if not every:
                    raise
            outputs.add_force(subparser)
    return parser


def _module(verb: str, *, optional: bool = False) -> Any:
    """Return the module of a verb; None for an optional one that cannot be loaded. Own verbs cannot be replaced."""
    if verb in OWN_VERBS:
        return importlib.import_module(f"curation.cli.verbs.{verb}{'_' * iskeyword(verb)}")
    try:
        return verb_module(verb)
    except UsageError:
        if optional:
            return None
        raise


class _TopHelp(argparse.RawDescriptionHelpFormatter):
    """Help in which the groups of the epilog list the verbs."""

    def _format_action(self, action: argparse.Action) -> str:
        return "" if isinstance(action, argparse._SubParsersAction) else super()._format_action(action)


class _Completion(argparse.Action):
    """Prints what a shell needs to complete verbs, options and files, and ends the command."""

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        import shtab

        print(shtab.complete(whole_parser(), given[1]))
        parser.exit()


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser of every verb, for completion at a shell and for the page of all commands."""
    parser = _parser(None, every=True)
    for command in outputs.commands_of(parser):
        for action in command._actions:
            if action.type is Path or isinstance(action.type, outputs.Output):
                action.complete = _FILES  # type: ignore[attr-defined]
    return parser


_FILES = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}
"""How shtab names the completion of files."""


def _declare(parser: argparse.ArgumentParser, module: Any, command: str, *, each: bool) -> None:
    """Declare the options of a verb: those of its function ``run``, or of each of its ``COMMANDS``.

    A command is a function that returns an `Answer`.
    """
    if hasattr(module, "add_arguments"):
        module.add_arguments(parser, command)
        parser.set_defaults(run=module.run)
        return
    from curation.cli.signature import add_arguments, add_commands

    if hasattr(module, "COMMANDS"):
        if isinstance(unusable := module.COMMANDS.get(command), UsageError):
            raise unusable
        usable = {name: function for name, function in module.COMMANDS.items() if callable(function)}
        add_commands(parser, usable, module.METAVAR)
    else:
        # `audit --each` has options of its own.
        run = module.run_each if each and hasattr(module, "run_each") else module.run
        add_arguments(parser, run)
        parser.set_defaults(command=run)
    for leaf in outputs.commands_of(parser):
        leaf.add_argument("--json", action="store_true", help="print the answer as JSON")


def _report(error: CurationError, *, as_json: bool) -> None:
    print("error: " + "\n".join(printable(line, "?") for line in str(error).split("\n")), file=sys.stderr)
    if as_json:
        print(json.dumps(error.as_dict(), indent=1))
