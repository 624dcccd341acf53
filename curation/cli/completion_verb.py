"""``curation completion``: what a shell needs to complete verbs, options and files."""

from __future__ import annotations

from typing import Literal

from curation.cli.output import Answer


def run(shell: Literal["bash", "zsh", "tcsh"], /) -> Answer:
    """Print the completion of a shell, made once from every verb's options: write it where the shell looks.

    Parameters
    ----------
    shell
        bash reads ~/.local/share/bash-completion/completions/curation, zsh the file _curation of a folder of fpath
    """
    import shtab

    from curation.cli import whole_parser

    text = shtab.complete(whole_parser(), shell)
    return Answer({"shell": shell, "script": text}, text.splitlines())
