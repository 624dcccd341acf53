"""The command line: one module a verb, loaded only when that verb is used."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from curation import edge
from curation.cli import outputs
from curation.errors import CurationError
from curation.version import __version__

COMMAND = "command"
"""Where a parsed command line keeps the function that it calls, if that was made from a signature."""

VERBS: dict[str, str] = {
    "list": "protocols, their papers and sources, and the available manifests",
    "init": "write a task file to begin with, from annotations of one's own",
    "build": "make a manifest from raw datasets",
    "import": "complete a manifest of published lists from the authors' files",
    "show": "print a manifest",
    "verify": "check a manifest against its digests, its sources, or an authors' list",
    "diff": "compare two manifests",
    "identify": "say which published list a file is, by what it holds and not by its name",
    "audit": "check a manifest, or any folder of lists, against the rules of a sound benchmark",
    "presence": "which images show which classes, out of annotation files of any size",
    "embed": "photos, boxes or texts as vectors of an encoder, kept in a store that resumes",
    "neighbors": "nearest images of a reference set, and how alike whole sets are",
    "duplicates": "photos that are the same, or nearly, under different names",
    "leaks": "look for the images of a benchmark in a corpus, and state what may have been missed",
    "propose": "rank the images of an OOD source that may hold an ID class; near, far and farther, as proposals",
    "review": "look at images in the FiftyOne App and record verdicts and boxes: start, status, export, boxes",
    "decisions": "what recorded verdicts say: counts, repeats, conflicts, agreement of reviewers, staleness",
    "apply": "replay recorded verdicts and boxes on a manifest: a new version that names their digests",
    "export": "write parts as COCO JSON, VOC XML, YOLO, id lists, or in the layout of the authors' files",
    "publish": "manifests as a dataset repository on a hub: card, tables, Croissant, citation, one commit and one tag",
    "pull": "bring a publication back from a hub, every file and every manifest checked",
    "hierarchy": "class hierarchies: trees, words, kinship, and what a one-parent tree loses",
    "renumber": "give images of joined COCO files ids of their own, where ids repeat",
    "cut": "group weakly co-occurring classes: normalized cut of co-occurrence",
    "baseline": "reference methods of the papers, on saved predictions",
    "evaluate": "score predictions",
    "leaderboard": "results of several methods, ranked where they are comparable",
    "scores": "post-hoc out-of-distribution scores from logits, features and a last layer",
    "completion": "what bash, zsh or tcsh needs to complete verbs, options and files",
}

_RENAMED = {"audits": "audit FOLDER --each --out DIR"}
"""Verbs that are gone, and what is typed in their place."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status (see `curation.edge.outcome`)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    verb, command = [*(word for word in given if not word.startswith("-")), "", ""][:2]
    parser = _parser(f"{verb} --each" if "--each" in given else verb, command)
    if verb in _RENAMED:
        parser.error(f"the verb {verb} is gone: curation {_RENAMED[verb]}")
    options, unknown = parser.parse_known_args(given)
    if unknown:
        _chosen(parser, options).error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.verb is None:
        _parser(None).print_help()
        return 2

    def work() -> int:
        with outputs.guarded(parser, options):
            return _run(options)

    return edge.outcome(work, lambda error: _report(error, as_json=getattr(options, "json", False)))


def _chosen(parser: argparse.ArgumentParser, options: argparse.Namespace) -> argparse.ArgumentParser:
    """Return the parser of the verb, and of its command, that was chosen: its usage is what helps."""
    for action in parser._actions:
        chosen = getattr(options, action.dest, None)
        if isinstance(action, argparse._SubParsersAction) and chosen in action.choices:
            return _chosen(action.choices[chosen], options)
    return parser


def _run(options: argparse.Namespace) -> int:
    """Call what the command line names, print its answer, and return the exit status."""
    if not hasattr(options, COMMAND):
        written: int = options.run(options)
        return written
    from curation.cli.output import Answer, emit, warnings_told
    from curation.cli.signature import call

    with warnings_told():
        answer: Answer = call(options.command, options)
    emit(answer.data, answer.lines, as_json=options.json)
    if answer.then is not None:
        answer.then()
    return answer.status


def _parser(verb: str | None, command: str = "", *, every: bool = False) -> argparse.ArgumentParser:
    """Return the parser; only the module of the verb, and of the command in use, is imported: help stays instant."""
    parser = argparse.ArgumentParser(
        prog="curation", description="Open-set evaluation data you can trust.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"curation {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    for name, summary in VERBS.items():
        subparser = verbs.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        if every or name == (verb or "").partition(" ")[0]:
            # `audit --each` is a program of its own behind the same word.
            own = "audits" if verb == "audit --each" else name
            _declare(subparser, importlib.import_module(f"curation.cli.{own}_verb"), command)
            outputs.add_force(subparser)
    return parser


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser of every verb, for completion at a shell."""
    parser = _parser(None, every=True)
    _complete_files(parser)
    return parser


_FILES = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}
"""How shtab names the completion of files."""


def _complete_files(parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command)
        elif action.type is Path or isinstance(action.type, outputs.Output):
            action.complete = _FILES  # type: ignore[attr-defined]


def _declare(parser: argparse.ArgumentParser, module: Any, command: str) -> None:
    """Declare the options of a verb: those of its function ``run``, or of each of its ``COMMANDS``.

    A command is a function that returns an `Answer`.
    """
    if hasattr(module, "add_arguments"):
        module.add_arguments(parser, command)
        parser.set_defaults(run=module.run)
        return
    from curation.cli.signature import add_arguments, add_commands

    if hasattr(module, "COMMANDS"):
        add_commands(parser, module.COMMANDS, module.METAVAR)
    else:
        add_arguments(parser, module.run)
        parser.set_defaults(command=module.run)
    _add_json(parser)


def _add_json(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json`` for a verb, or for each of its commands."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for command in (one for action in below for one in action.choices.values()):
        _add_json(command)
    if not below:
        parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def _report(error: CurationError, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(error.as_dict(), indent=1))
    # A name from a file may hold terminal escapes.
    lines = ("".join(c if c.isprintable() else "?" for c in line) for line in str(error).split("\n"))
    print("error: " + "\n".join(lines), file=sys.stderr)
