"""A manifest of some lists of images of one dataset, for tests that need no benchmark."""

from collections.abc import Mapping, Sequence

from curation.core.canonical import sha256_of_lines
from curation.manifest.header import SCHEMA_VERSION, ClassEntry, Header, LabelView, Paper, PartEntry, Rule, SourceEntry
from curation.manifest.manifest import Manifest


def manifest_of_lists(
    lists: Mapping[str, Sequence[str]],
    *,
    name: str,
    source: str,
    namespace: str,
    classes: Sequence[ClassEntry] = (),
    view: LabelView | None = None,
    order: str = "code_point",
) -> Manifest:
    """Return a manifest whose parts are lists of ids, of one source that is named after its dataset."""
    parts = tuple(
        PartEntry(
            name=part,
            role="test",
            sources=(source,),
            selection="by hand",
            view=view or LabelView(),
            order=order,  # type: ignore[arg-type]
            images=len(ids),
            sha256=sha256_of_lines(ids),
        )
        for part, ids in lists.items()
    )
    entry = SourceEntry(
        name=source,
        dataset=source,
        part="val2017",
        namespace=namespace,
        licence="",
        media_redistributable=False,
        files=(),
    )
    header = Header(
        schema_version=SCHEMA_VERSION,
        name=name,
        version="1.0.0",
        title=f"Lists of {source}",
        paper=Paper(title="None", authors="Nobody", year=2025, venue="", bibtex=""),
        taxonomy="OSC",
        origin="regenerated",
        classes=tuple(classes),
        parts=parts,
        sources=(entry,),
        rule=Rule(protocol="pair", algorithm_version=1, parameters={}),
    )
    return Manifest(header, {part: tuple(ids) for part, ids in lists.items()})
