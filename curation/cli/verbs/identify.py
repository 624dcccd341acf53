"""``curation identify``: which published lists are these files?"""  # noqa: D400

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, counted_examples
from curation.cli.outputs import OutputFile
from curation.errors import UsageError


@dataclass(frozen=True)
class Options:
    """Say which published lists some files are, by what they hold; or make an index of lists to hold files against.

    Attributes
    ----------
    files
        lists of any published form, or folders of them
    lists
        a folder of more known lists, beside those of the index; shared images are counted with these (repeatable)
    index
        an index made by --make-index (default: the one that comes with curation)
    make_index
        make an index of the lists below this folder
    declaration
        with --make-index: the TOML file that says whose lists they are (default: lists.toml of the folder, else every
        list is taken)
    out
        with --make-index: the file of the index; of a name that ends in .csv, counts and digests of each list
        (repeatable)
    """

    files: Annotated[tuple[Path, ...], "FILE"] = ()
    _: KW_ONLY
    lists: tuple[Annotated[Path, "DIR"], ...] = ()
    index: Path | None = None
    make_index: Annotated[Path | None, "DIR"] = None
    declaration: Path | None = None
    out: tuple[Annotated[Path, OutputFile()], ...] = ()


def run(options: Options) -> Answer:
    """Print what is known of each list; 1 where one is unknown, else 0."""
    if options.make_index is not None:
        return _made(options, options.make_index)
    if given := [name for name in ("declaration", "out") if getattr(options, name)]:
        raise UsageError(f"--{given[0]} belongs to --make-index", hint="curation identify --make-index DIR --out FILE")
    from curation.identify.run import identify

    answer = identify(*options.files, lists=options.lists, index=options.index)
    return Answer(answer.data, answer.text().split("\n"), int(not answer.ok))


def _made(options: Options, folder: Path) -> Answer:
    from curation.identify.index import index_bytes, make_index
    from curation.storage import write_bytes, write_text

    if options.files or options.lists or options.index:
        raise UsageError("--make-index takes one folder, and no lists beside it", where=f"--make-index {folder}")
    if not options.out:
        raise UsageError("--make-index needs a file to write", expected="--out FILE, --out FILE.csv or both")
    made = make_index(folder, options.declaration)
    for path in options.out:
        if path.suffix.lower() == ".csv":
            write_text(path, made.digests)
        else:
            write_bytes(path, index_bytes(made.index))
    data = {
        "lists": [{"name": one.name, "lines": one.lines, "images": one.images} for one in made.index.lists],
        "undeclared": list(made.undeclared),
        "passed_over": dict(made.passed_over),
    }
    lines = [f"{len(made.index):,} lists, {sum(one.lines for one in made.index.lists):,} lines"]
    lines += [f"files that are not declared: {counted_examples(made.undeclared)}"] if made.undeclared else []
    lines += [f"passed over: {name}: {why}" for name, why in made.passed_over.items()]
    return Answer(data, lines)
