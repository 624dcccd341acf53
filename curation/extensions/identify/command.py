"""``curation identify``: recognise published lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer

GROUP = "Lists of others"
SUMMARY = "recognise published lists by their content"


def run(
    files: Annotated[tuple[Path, ...], "FILE"] = (), /, *, lists: tuple[Annotated[Path, "DIR"], ...] = ()
) -> Answer:
    """Print the known facts about each list; return 1 if a list is unknown, else 0.

    Parameters
    ----------
    files
        lists of any published form, or folders of them
    lists
        a folder of more known lists, beside those of the index; shared images are counted with these
    """
    from curation.extensions.identify.run import identify

    answer = identify(*files, lists=lists)
    return Answer(answer.data, answer.text().split("\n"), int(not answer.ok))
