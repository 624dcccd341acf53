"""The command line: each verb is a module, which is loaded only when the verb is used."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, NoReturn

from curation.cli.offered import help_lines, offered, verb_module
from curation.cli.option_names import RETIRED, Help, refuse_retired
from curation.core import process, writing
from curation.core.entry_points import loading
from curation.core.errors import CurationError, UsageError
from curation.core.tables import printable
from curation.version import __version__

GROUPS: dict[str, dict[str, str]] = {
    "Lists": {
        "list": "benchmarks with their sources, and the available manifests",
        "init": "write a benchmark file from your own data",
        "split": "divide one source into disjoint parts",
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
_MODULES = {"import": "build", "pull": "publish"}
"""The module of a verb whose function is ``run_VERB`` beside that of another verb."""
OWN_VERBS = frozenset(verb for verbs in GROUPS.values() for verb in verbs)


def groups() -> dict[str, dict[str, str]]:
    """Return every verb and its summary in the groups of the help; verbs of other packages follow those of this one."""
    verbs = {title: dict(lines) for title, lines in GROUPS.items()}
    for verb, (title, summary) in help_lines().items():
        if verb not in OWN_VERBS:
            verbs.setdefault(title, {})[verb] = summary
    return verbs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status (see `curation.core.process.outcome`)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    verb, command = [*(word for word in words if not word.startswith("-")), "", ""][:2]

    def work() -> int:
        nonlocal command
        if verb == "evaluate" and ({"/", "@"} & {*command} or Path(command, "manifest.json").is_file()):
            # The rule of a manifest says how it is scored; the name of a benchmark goes before a folder of that name.
            from curation.cli.verbs.evaluate import SUMMARIES, evaluator_of

            if command not in SUMMARIES:
                position = words.index(command)
                command, words[position : position + 1] = (
                    evaluator_of(command),
                    [evaluator_of(command), "--manifest", command],
                )
        parser = _parser(verb, command)
        options = parser.parse_args(words)
        if options.verb is None:
            parser.print_help()
            return 2
        return _run(options)

    options_alone = takewhile(lambda word: word != "--", words)
    as_json = any(word.partition("=")[0] == "--json" for word in options_alone)
    return process.outcome(work, lambda error: _report(error, as_json=as_json))


class Parser(argparse.ArgumentParser):
    """A parser that raises `CurationError`; it splits the words of a command line, and `call` converts them."""

    def __init__(self, **settings: Any) -> None:
        usual: dict[str, Any] = {"formatter_class": Help, "allow_abbrev": False}
        super().__init__(**usual | settings)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse unknown options first, then missing ones and surplus words."""
        has_commands = any(isinstance(action, argparse._SubParsersAction) for action in self._actions)
        for word in takewhile(lambda word: word != "--", () if has_commands else args or ()):
            option = word.partition("=")[0]
            if option.startswith("--") and option not in self._option_string_actions:
                refuse_retired(option[2:], self.prog)
                known = ", ".join(self._option_string_actions)
                self._refuse(f"{option[:80]} of `{self.prog}` does not exist", expected=known, value=option)
        options, rest = super().parse_known_args(args, namespace)
        if rest:
            expected = "each value after its option, patterns in quotes"
            hint = self._likely_words(list(args or ()), rest)
            self._refuse("There are words that belong to no option", expected=expected, value=" ".join(rest), hint=hint)
        return options, rest

    def _likely_words(self, words: list[str], rest: list[str]) -> str | None:
        """Return a hint for words that belong to no option: ``NAME=PATH``, the option again, or a pattern in quotes."""
        option, value = ["", "", *words][words.index(rest[0]) :][:2]
        action = self._option_string_actions.get(option)
        if action is None:
            return None
        if "=" in str(action.metavar) and "=" not in value:
            return f"did you mean {option} {value}={rest[0]}?"
        if "=" in str(action.metavar) and all("=" in word for word in (value, *rest)):
            return f"did you mean {' '.join(f'{option} {word}' for word in (value, *rest))}?"
        if all(Path(word).exists() for word in (value, *rest)):
            return f"the shell wrote names of files in place of a pattern: {option} 'PATTERN', in quotes"
        return None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a verb or command that does not exist; `call` refuses other words."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            expected = ", ".join(action.choices) + ", or a folder with manifest.json" * self.prog.endswith(" evaluate")
            command = f"{self.prog} {value}"
            self._refuse(f"There is no `{command[:80]}`", expected=expected, value=value, hint=RETIRED.get(command))

    def error(self, message: str) -> NoReturn:
        """Raise for a command line that argparse cannot split."""
        names = message.partition("required: ")[2]
        texts = {
            argparse._get_action_name(action): ", ".join(action.choices or ())
            if isinstance(action, argparse._SubParsersAction)
            else str(action.help or "").partition("\n")[0]
            for action in self._actions
        }
        missing = {name: texts.get(name, "") for name in names.split(", ") if names}
        problem = f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} missing" if missing else message
        expected = "; ".join(f"{name}: {text}" if text else name for name, text in missing.items())
        self._refuse(problem, expected=expected.replace("%%", "%") or None)

    def _refuse(
        self, problem: str, *, expected: str | None, value: str | None = None, hint: str | None = None
    ) -> NoReturn:
        words = {word.lower(): word for word in (expected or "").split(", ")}
        near = get_close_matches(value.lower(), words, 1) if value else []
        raise UsageError(
            problem,
            where=self.prog,
            expected=expected and expected[:400],
            found=value and value[:200],
            hint=hint or (f"did you mean {words[near[0]]}?" if near else f"{self.prog} --help"),
        )


def _run(options: argparse.Namespace) -> int:
    """Call the function that the command line names, print its answer, and return the exit status."""
    from curation.cli.output import Answer, emit, warnings_shown
    from curation.cli.signature import call, option_files

    inputs, outputs = option_files(options)
    with writing.command(inputs=inputs, force=getattr(options, "force", False)), warnings_shown():
        for output, path in outputs:
            output.check(path)
        answer: Answer = call(options.command, options)
        lines = chain(answer.lines, (f"wrote {path}" for path in answer.written))
        emit(answer.data, lines, as_json=options.json)
        if answer.then is not None:
            answer.then()
    return answer.status


def _parser(verb: str | None, command: str = "", *, every: bool = False) -> argparse.ArgumentParser:
    """Return the parser; it imports only the module of the verb in use, so that help is fast."""
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
        usage="curation [-h] [--version] VERB ...",
    )
    parser.add_argument("--version", action="version", version=f"curation {__version__}")
    below = parser.add_subparsers(dest="verb", metavar="VERB", help="what to do", prog="curation")
    for name in summaries if is_listed else names:
        module = _module(name, optional=every) if every or name == verb else None
        summary = str(summaries.get(name) or getattr(module, "SUMMARY", name))
        child = below.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if module is not None:
            try:
                with loading(module.__name__, f"The command `curation {name}`"):
                    _declare(child, module, command, every=every)
            except UsageError:
                # The page of all commands has what can be used.
                if not every:
                    raise
    return parser


def _module(verb: str, *, optional: bool = False) -> Any:
    """Return the module of a verb; None for an optional one that cannot be loaded. Own verbs cannot be replaced."""
    if verb in OWN_VERBS:
        return importlib.import_module(f"curation.cli.verbs.{_MODULES.get(verb, verb)}")
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


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser of every verb, for the page of all commands."""
    return _parser(None, every=True)


def _declare(parser: argparse.ArgumentParser, module: Any, command: str, *, every: bool) -> None:
    """Declare the options of a verb: those of its function ``run``, or of the used function of its ``COMMANDS``.

    A command is a function that returns an `Answer`, or an error where it cannot be loaded. A module whose commands
    take long to import has their ``SUMMARIES`` instead, and a function ``command_of``.
    """
    from curation.cli.signature import add_arguments, summary_of

    if not (hasattr(module, "COMMANDS") or hasattr(module, "SUMMARIES")):
        function_name = f"run_{parser.prog.removeprefix('curation ')}"
        add_arguments(parser, getattr(module, function_name, None) or module.run)
        return
    if hasattr(module, "SUMMARIES"):
        summaries, function_of = module.SUMMARIES, module.command_of
    else:
        if isinstance(unusable := module.COMMANDS.get(command), UsageError):
            raise unusable
        usable = {name: function for name, function in module.COMMANDS.items() if callable(function)}
        summaries, function_of = {name: summary_of(function) for name, function in usable.items()}, usable.__getitem__
    below = parser.add_subparsers(dest=module.METAVAR.lower(), metavar=module.METAVAR, required=True)
    for name, summary in summaries.items():
        leaf = below.add_parser(name, help=summary, description=f"{summary}.")
        if every or name == command:
            leaf.description = f"{summary_of(function := function_of(name))}."
            add_arguments(leaf, function)


def _report(error: CurationError, *, as_json: bool) -> None:
    print("error: " + "\n".join(printable(line, "?") for line in str(error).split("\n")), file=sys.stderr)
    if as_json:
        print(json.dumps(error.as_dict(), indent=1))
