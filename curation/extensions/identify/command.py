"""``curation identify``: which published lists are these files?"""  # noqa: D400

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, counted_examples
from curation.cli.outputs import OUTPUT_FILE
from curation.core.errors import UsageError

GROUP = "Lists of others"
SUMMARY = "recognise published lists by their content"


def run(
    files: Annotated[tuple[Path, ...], "FILE"] = (),
    /,
    *,
    lists: tuple[Annotated[Path, "DIR"], ...] = (),
    index: Path | None = None,
    make_index: Annotated[Path | None, "DIR"] = None,
    declaration: Path | None = None,
    out: Annotated[Path | None, OUTPUT_FILE] = None,
) -> Answer:
    """Print what is known of each list; 1 where one is unknown, else 0.

    Parameters
    ----------
    files
        lists of any published form, or folders of them
    lists
        a folder of more known lists, beside those of the index; shared images are counted with these
    index
        an index made by --make-index (default: the one that comes with curation)
    make_index
        make an index of the lists below this folder
    declaration
        with --make-index: the TOML file that says whose lists they are (default: lists.toml of the folder, else every
        list is taken)
    out
        with --make-index: the file of the index
    """
    if make_index is not None:
        if files or lists or index:
            raise UsageError(
                "--make-index takes one folder, and no lists beside it", where=f"--make-index {make_index}"
            )
        return _made(make_index, declaration, out)
    if declaration or out:
        option = "declaration" if declaration else "out"
        raise UsageError(f"--{option} belongs to --make-index", hint="curation identify --make-index DIR --out FILE")
    from curation.extensions.identify.run import identify

    answer = identify(*files, lists=lists, index=index)
    return Answer(answer.data, answer.text().split("\n"), int(not answer.ok))


def _made(folder: Path, declaration: Path | None, out: Path | None) -> Answer:
    from curation.core.writing import write_bytes
    from curation.extensions.identify.index import index_bytes, make_index

    if out is None:
        raise UsageError("--make-index needs a file to write", expected="--out FILE")
    made = make_index(folder, declaration)
    write_bytes(out, index_bytes(made.index))
    data = {
        "lists": [{"name": known.name, "lines": known.lines, "images": known.images} for known in made.index.lists],
        "undeclared": list(made.undeclared),
        "passed_over": dict(made.passed_over),
    }
    lines = [f"{len(made.index):,} lists, {sum(known.lines for known in made.index.lists):,} lines"]
    lines += [f"files that are not declared: {counted_examples(made.undeclared)}"] if made.undeclared else []
    lines += [f"passed over: {name}: {why}" for name, why in made.passed_over.items()]
    return Answer(data, lines)
