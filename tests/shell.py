"""Commands as a shell runs them: what they print, and their exit status."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import pytest

from curation.cli import groups, main, whole_parser

VERBS = {verb for verbs in groups().values() for verb in verbs}
"""Every verb, those of the extensions included."""


class Shell:
    """Runs commands of ``curation`` in this process; each method is one command, and checks its exit status.

    A refusal is an error in words, without a traceback.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def _run(self, words: tuple[object, ...], status: int) -> tuple[str, str]:
        self._capsys.readouterr()
        found = main([*map(str, words)])
        out, err = self._capsys.readouterr()
        assert found == status, err or out
        assert "Traceback" not in err
        return out, err

    def out(self, *words: object, status: int = 0) -> str:
        """Return what a command prints to standard output."""
        return self._run(words, status)[0]

    def err(self, *words: object, status: int = 2) -> str:
        """Return what a command prints to standard error."""
        text = self._run(words, status)[1]
        assert status == 0 or "error: " in text or "warning: " in text
        return text

    def data(self, *words: object, status: int = 0) -> Any:
        """Return the JSON that a command prints."""
        return json.loads(self.out(*words, status=status))


def parsers(parser: argparse.ArgumentParser | None = None) -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of every command."""
    parser = parser or whole_parser()
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for leaf in dict.fromkeys(leaf for action in below for leaf in action.choices.values()):
        yield from parsers(leaf)
    if not below:
        yield parser
