"""``curation list``: protocols, what they need, and the available manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from curation.cli.output import Answer, Table, printable, table_lines, warn
from curation.cli.outputs import IndexedFolder
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.benchmarks.benchmark import Benchmark


@dataclass(frozen=True)
class Options:
    """Protocols, their papers and sources, and the available manifests.

    Attributes
    ----------
    what
        these alone (default: protocols and manifests), or one protocol with its parts, page and
        manifests
    folder
        a folder of manifests beside ./manifests, $CURATION_MANIFESTS and those that come with curation
        (repeatable)
    write_index
        write index.json into ./manifests, or into the --folder
    """

    what: Annotated[str | None, "protocols | manifests | PROTOCOL"] = None
    _: KW_ONLY
    folder: tuple[Annotated[Path, IndexedFolder(), "DIR"], ...] = ()
    write_index: bool = False


def run(options: Options) -> Answer:
    """Print protocols with paper, sources and parameters, then the available manifests; or one protocol alone."""
    from curation.benchmarks.registry import benchmarks, registry

    data: dict[str, Any] = {}
    lines: list[str] = []
    one = _protocol_named(options.what) if options.what not in (None, "protocols", "manifests") else None
    if options.what != "manifests":
        chosen = [one] if one else list(benchmarks().values())
        data["protocols"] = [_protocol_data(protocol) for protocol in chosen]
        lines += [line for told in data["protocols"] for line in _protocol_lines(told, whole=one is not None)]
        for name, reason in registry().unusable.items():
            warn(f"the package that offers protocol {name} cannot be used: {reason}")
    written = _write_index(options) if options.write_index else []
    if options.what != "protocols":
        found = _manifests(options.folder)
        data["manifests"] = [row for row in found if one is None or _is_of(row, one)]
        lines += _manifest_lines(data["manifests"])
    return Answer(data, [*lines, *written])


def _protocol_named(name: str) -> Benchmark:
    from curation.benchmarks.registry import benchmarks, find_benchmark

    try:
        return find_benchmark(name)
    except UsageError as error:
        raise UsageError(
            "There is nothing of this name to list",
            where=f"curation list {name[:80]}",
            expected=f"protocols, manifests, or a protocol: {', '.join(benchmarks())}",
            hint=error.hint,
        ) from None


def _is_of(manifest: Mapping[str, Any], protocol: Benchmark) -> bool:
    """Return whether a protocol made a manifest, or its authors published the lists."""
    return bool(manifest["protocol"] == protocol.name or manifest["name"].startswith(f"{protocol.name}/"))


def _protocol_data(protocol: Benchmark) -> dict[str, Any]:
    paper = protocol.paper
    return {
        "name": protocol.name,
        "summary": protocol.summary,
        "paper": {
            "title": paper.title,
            "authors": paper.authors,
            "year": paper.year,
            "venue": paper.venue,
            "bibtex": paper.bibtex,
        },
        "sources": [
            {
                "name": slot.name,
                "dataset": slot.dataset,
                "part": slot.part,
                "required": slot.required,
                "meaning": slot.meaning,
            }
            for slot in protocol.slots
        ],
        "parameters": [
            {"name": parameter.name, "default": parameter.default, "meaning": parameter.meaning}
            for parameter in protocol.parameters
        ],
        "parts": [{"name": name, "meaning": meaning} for name, meaning in protocol.parts],
        "page": protocol.page,
    }


def _protocol_lines(protocol: dict[str, Any], *, whole: bool) -> list[str]:
    paper = protocol["paper"]
    sources = tuple(
        (slot["name"], "required" if slot["required"] else "optional", slot["meaning"]) for slot in protocol["sources"]
    )
    parameters = tuple((one["name"], one["default"], one["meaning"]) for one in protocol["parameters"])
    parts = tuple((one["name"], one["meaning"]) for one in protocol["parts"])
    more = [*table_lines(Table("  parts", ("", ""), parts)), f"  page: {protocol['page']}", ""]
    return [
        f"{protocol['name']}: {protocol['summary']}",
        f"  {paper['title']}. {paper['authors']}. {paper['venue']} {paper['year']}",
        "",
        *table_lines(Table("  sources (--source NAME=PATH)", ("", "", ""), sources)),
        *table_lines(Table("  parameters (--set KEY=VALUE)", ("", "default", ""), parameters)),
        *(more if whole else []),
    ]


def _write_index(options: Options) -> list[str]:
    from curation.manifest.locate import INDEX_FILE, index_text, manifest_index
    from curation.storage import write_text

    if options.what not in (None, "manifests") or len(options.folder) > 1:
        raise UsageError(
            "--write-index writes the index of one folder of manifests",
            expected="curation list manifests [--folder DIR] --write-index",
        )
    (root,) = options.folder or [Path("manifests")]
    index = manifest_index(root)
    if not index["manifests"]:
        raise UsageError(
            "There is no manifest to index",
            where=str(root),
            expected="a folder that holds NAME/VERSION/manifest.json, such as manifests",
            hint="curation list manifests --folder DIR --write-index",
        )
    write_text(root / INDEX_FILE, index_text(index))
    return [f"wrote {printable(str(root / INDEX_FILE))}: {len(index['manifests'])} manifests"]


def _manifests(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the available manifests; a damaged one is warned of and left out, a circle of versions refused."""
    from curation.errors import CurationError, VersionChainError
    from curation.manifest.locate import manifest_folders, require_folder_of_manifests, superseded_by
    from curation.manifest.manifest import manifest_roots, packaged_manifests, read_manifest

    for folder in folders:
        require_folder_of_manifests(folder)
    at_hand, places = {}, {}
    for name, folder in manifest_folders(manifest_roots(folders)).items():
        try:
            at_hand[name] = read_manifest(folder)
        except VersionChainError:
            raise
        except CurationError as error:
            warn(f"{folder}: {error.what}")
            continue
        places[name] = folder
    return [
        {
            "name": manifest.header.name,
            "version": manifest.header.version,
            "protocol": manifest.header.rule.protocol,
            "origin": manifest.header.origin,
            "parts": ", ".join(part.name for part in manifest.header.parts),
            "folder": str(places[name]),
            "packaged": places[name].is_relative_to(packaged_manifests()),
            "digest": manifest.digest,
            "supersedes": [
                {"version": one.version, "digest": one.digest, "at_hand": one.at_hand}
                for one in superseded_by(manifest, at_hand)
            ],
        }
        for name, manifest in at_hand.items()
    ]


def _manifest_lines(manifests: Sequence[dict[str, Any]]) -> list[str]:
    rows = [
        {
            **{name: one[name] for name in ("name", "version")},
            "digest": one["digest"].removeprefix("sha256:")[:12],
            **{name: one[name] for name in ("origin", "parts")},
            "supersedes": " > ".join(map(_link, one["supersedes"])),
            "folder": "comes with curation" if one["packaged"] else one["folder"],
        }
        for one in manifests
    ]
    if not rows:
        return table_lines(Table("No manifests at hand", (), ()))
    # A column without a word takes room from the folder, which people copy.
    columns = tuple(name for name in rows[0] if any(row[name] for row in rows))
    return table_lines(Table("Manifests at hand", columns, tuple(tuple(row[name] for name in columns) for row in rows)))


def _link(superseded: Mapping[str, Any]) -> str:
    return str(superseded["version"]) + ("" if superseded["at_hand"] else " (not at hand)")
