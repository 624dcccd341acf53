"""Large-Scale Open-Set Classification Protocols for ImageNet (Palechor, Bhoumik, Günther; WACV 2023): P1, P2, P3.

Superclasses of WordNet 3.0 determine which of ImageNet's 1,000 classes are known, negative (shown in training as not
known) and unknown (section 3, Tables 3 to 5). Training images of known and negative classes are split 80/20 into train
and val; the validation images of all three are the test part.

The published lists are the output of scikit-learn's ``train_test_split(images, classes, train_size=0.8,
stratify=classes, random_state=42)``, reproduced here exactly without scikit-learn. The rounding of a class's share
depends on the order of two floating-point operations: it is that of scikit-learn 1.0.2 to 1.9.1 at least.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from curation.benchmarks.benchmark import benchmark_facts, fact
from curation.benchmarks.parts import Part, Selection, compared, make_part, manifest_of, source_entry, unread_entry
from curation.benchmarks.rules.benchmark_file import BenchmarkFile, packaged_file
from curation.benchmarks.rules.hierarchy import PAPER, ROLES, SEEN, PartName, RolePartition, select
from curation.core.canonical import sha256_of_lines
from curation.core.errors import ExportError, ProtocolError
from curation.core.ids import ilsvrc2012_classes
from curation.core.tables import Table
from curation.evaluation.class_scores import GROUPS
from curation.manifest.header import Figure, Header, LabelView, PartEntry, SourceEntry
from curation.manifest.manifest import Manifest
from curation.manifest.views import locate_images
from curation.publishing.exporting import Format
from curation.publishing.formats.plan import Plan, PlannedFile, safe_name
from curation.signals.hierarchy.hierarchy import dropped_leaves, label, leaves_under
from curation.signals.hierarchy.wordnet import imagenet_dag, imagenet_tree, open_wordnet
from curation.sources.datasets import family
from curation.sources.imagenet import NO_NAMES, class_of_images
from curation.sources.source import Source

_FACTS = benchmark_facts(__name__)
FIGURES: tuple[str, ...] = tuple(_FACTS["figures"])
TABLE_1 = fact(__name__, "table_1", dict[str, tuple[int, ...]])
"""Published figures in the order of `FIGURES`."""
PROTOCOLS = {name: packaged_file(f"imagenet/{name}") for name in TABLE_1}
"""P1, P2 and P3 as benchmark files."""

TRAIN, VAL = "imagenet-train", "imagenet-val"
VIEW = LabelView()
_WORDS: dict[str, str] = _FACTS["words"]
_SOURCE_OF: dict[PartName, str] = {"train": TRAIN, "val": TRAIN, "test": VAL}


def protocol_file(parameters: Mapping[str, Any]) -> BenchmarkFile:
    """Return the benchmark file for parameters of `build`."""
    return packaged_file(
        f"imagenet/{parameters['protocol']}",
        tree="published" if parameters["hierarchy"] == "published" else "imagenet",
        seed=parameters["seed"],
        missing=parameters["missing"],
    )


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a protocol: parts train, val and test.

    Parameters
    ----------
    sources : mapping of str to Source
        ``imagenet-train``, ``imagenet-val``, or both. A part without its source, or whose source has only counts, is
        declared: it has a rule and expected figures but no list.
    parameters : mapping
        As ``imagenet.toml`` declares them.

    Raises
    ------
    ProtocolError
        No source is given; a class of the protocol has no image (unless ``missing`` says otherwise); a class is too
        small to be split.
    """
    needed = f"--source {TRAIN}=PATH" + f", --source {VAL}=PATH, or both" * (parameters["missing"] != "restrict")
    if not sources or (parameters["missing"] == "restrict" and TRAIN not in sources):
        raise ProtocolError("The source of the classes is not given", expected=needed, found=", ".join(sources) or None)
    protocol = protocol_file(parameters)
    selection = select(protocol, {protocol.role(name): name for name in sources}, sources)
    labels = selection.roles.labels()
    names = imagenet_dag().nodes(data="name")
    classes = selection.roles.entries({wnid: (names[wnid],) for wnid in labels if names[wnid]})
    selected = {part.name: part.images for part in selection.parts}
    parts: list[Part | PartEntry] = []
    for name, slot in _SOURCE_OF.items():
        if name in selected and has_names(sources[slot]):
            parts.append(make_part(name, name, selected[name], classes, view=VIEW, rule=_WORDS[name], order="listed"))
        else:
            entry = PartEntry(name=name, role=name, sources=(slot,), selection=_WORDS[name], view=VIEW, order="listed")
            parts.append(entry)
    # For a quick comparison: superclasses, cut, and a digest of the class lists.
    facts = {
        "cut": protocol.parameters["cut"],
        **{f"superclasses_{role}": getattr(protocol.classes, role) for role in ROLES},
        "class_labels_sha256": sha256_of_lines([f"{wnid} {number}" for wnid, number in sorted(labels.items())]),
    }
    variant = " over all hypernyms (a correction)" if parameters["hierarchy"] == "dag" else ""
    return manifest_of(
        parts,
        name=default_name(parameters),
        title=f"ImageNet open-set protocol {parameters['protocol'].upper()}{variant}",
        paper=PAPER,
        taxonomy="OSC",
        origin="regenerated" if all(isinstance(part, Part) for part in parts) else "declared",
        classes=classes,
        sources=tuple(_source(slot, sources) for slot in (TRAIN, VAL)),
        protocol="imagenet",
        parameters={**parameters, **facts},
        figures=_figures(selection.roles, selected, parameters),
        notes=(*_hierarchy_notes(protocol, parameters), *selection.notes),
    )


def class_table(header: Header) -> Table | None:
    """Return the classes in the form of the paper's Tables 3 to 5: by role and superclass, with wnid and names.

    None for a manifest without superclasses or with other classes than ILSVRC-2012's.
    """
    parameters: Mapping[str, Any] = header.rule.parameters
    leaves = set(ilsvrc2012_classes())
    if not {entry.name for entry in header.classes} <= leaves or "superclasses_known" not in parameters:
        return None
    graph = imagenet_tree() if parameters["hierarchy"] == "published" else imagenet_dag()
    words = open_wordnet().words_of
    nodes = [node for role in ROLES for node in parameters.get(f"superclasses_{role}") or ()]
    inside = {node: set(leaves_under(graph, node, leaves)) for node in nodes}
    rows = []
    for role in ROLES:
        left = {entry.name for entry in header.classes if entry.role == role}
        # Classes of the known superclasses may have any role, since these are cut.
        for node in nodes:
            listed = sorted(left & inside[node])
            left -= inside[node]
            head = f"{label(graph, node)} ({len(listed)})"
            rows += [
                ("" if row else role, "" if row else head, wnid, ", ".join(words(wnid)).replace("_", " "))
                for row, wnid in enumerate(listed)
            ]
        rows += [(role, "-", wnid, ", ".join(words(wnid)).replace("_", " ")) for wnid in sorted(left)]
    return Table("Classes", ("role", "superclass (classes)", "wnid", "names"), tuple(rows))


def default_name(parameters: Mapping[str, Any]) -> str:
    """Return the manifest's name: ``imagenet/p1``, with suffixes such as ``-dag`` or ``-seed7`` for deviations."""
    marks = {
        "-dag": parameters["hierarchy"] == "dag",
        f"-seed{parameters['seed']}": parameters["seed"] != 42,
        f"-{parameters['missing']}": parameters["missing"] != "refuse",
    }
    return f"imagenet/{parameters['protocol']}" + "".join(mark for mark, applies in marks.items() if applies)


def has_names(source: Source) -> bool:
    """Return whether a source names its images rather than stating counts only."""
    return NO_NAMES not in source.dropped


def _source(slot: str, sources: Mapping[str, Source]) -> SourceEntry:
    if slot not in sources:
        return unread_entry(slot, "imagenet", slot.partition("-")[2], note="from your own disk")
    note = "" if has_names(sources[slot]) else "counts by class: figures follow from them, lists do not"
    return source_entry(slot, sources[slot], note=note)


def _hierarchy_notes(protocol: BenchmarkFile, parameters: Mapping[str, Any]) -> tuple[str, ...]:
    if parameters["hierarchy"] == "dag":
        return (_WORDS["dag"],)
    nodes = [node for role in ROLES for node in getattr(protocol.classes, role)]
    lost = dropped_leaves(imagenet_dag(), imagenet_tree(), nodes, ilsvrc2012_classes())
    leaves = sorted({leaf for several in lost.values() for leaf in several})
    examples = ", ".join(label(imagenet_dag(), leaf) for leaf in leaves[:3])
    return (_WORDS["published"].format(dropped=len(leaves), examples=examples),)


def _figures(
    roles: RolePartition, selected: Mapping[PartName, Selection], parameters: Mapping[str, Any]
) -> tuple[Figure, ...]:
    """Return the figures of Table 1 with the obtained ones; the paper has no figures for a variant."""
    obtained = {f"{role}.classes": len(getattr(roles, role)) for role in ROLES}
    for name, images in selected.items():
        names = np.array(images.source.categories.names, object)[class_of_images(images.source)[images.positions]]
        count = Counter(names.tolist())
        for role in ROLES if name == "test" else SEEN:
            obtained[f"{name}.{role}_images"] = sum(count[wnid] for wnid in getattr(roles, role))
    of_paper = parameters["hierarchy"] == "published" and parameters["missing"] != "restrict"
    location = "Table 1" if of_paper else "not in the paper"
    figures = []
    for figure, published in zip(FIGURES, TABLE_1[parameters["protocol"]], strict=True):
        if figure not in obtained:
            slot = next(slot for name, slot in _SOURCE_OF.items() if figure.startswith(name))
            why = f"needs --source {slot}=PATH"
        elif not of_paper:
            why = "not a protocol of the paper"
        else:
            why = "classes are missing from the data set" if parameters["missing"] == "report" else "other files"
        figures.append(compared(figure, obtained.get(figure), published if of_paper else None, location, why))
    return tuple(figures)


_ROWS = 10_000


def plan_imagenet_csv(manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]) -> Plan:
    r"""Return the plan of a CSV file for each part, such as ``p2_train.csv``, in the authors' layout.

    No header; path and label, ``train/n02088632/n02088632_3640.JPEG,3``; lines that end in ``\r\n``. For a
    user's images, the path is that of the source.

    Raises
    ------
    ExportError
        The manifest is about boxes; a class has no role; a file or class name is unsafe; no part, or a part twice.
    ManifestError, MissingListError
        See `curation.manifest.views.locate_images`.
    """
    if not parts or len(set(parts)) < len(parts):
        raise ExportError("Each part is exported once", expected="one or more parts", found=", ".join(parts))
    rows = {part: _labelled(manifest, part, sources) for part in parts}
    stem = manifest.header.name.rpartition("/")[2]
    return Plan(
        files=[PlannedFile(f"{stem}_{part}.csv", partial(_chunks, column)) for part, column in rows.items()],
        records=sum(-(-len(column) // _ROWS) for column in rows.values()),
        counts={"rows": sum(map(len, rows.values()))},
    )


def _labelled(manifest: Manifest, part: str, sources: Mapping[str, Source]) -> list[tuple[str, int]]:
    """Return path and label of each image of a part, in its order."""
    located = locate_images(manifest, part, sources)
    if len(located.sources) != 1 or located.sources[0].objects is not None:
        raise ExportError(
            "A list of images by class has one label per image, and this manifest is about boxes",
            where=f"part {part}",
            expected="coco, voc, yolo or elephant-json for the boxes, txt for the images alone",
        )
    (source,) = located.sources
    category = class_of_images(source)[located.position].tolist()
    labels = {
        name: GROUPS.get(entry.role, entry.index)
        for entry in manifest.header.classes
        for name in (*entry.aliases, entry.name)
    }
    if lacking := [name for code in dict.fromkeys(category) if (name := source.categories.names[code]) not in labels]:
        raise ExportError(
            "An image of the part shows a class that has no role in the manifest",
            where=f"part {part}",
            found=lacking[0],
        )
    names = source.images.file_names[located.position].tolist()
    class_names = [source.categories.names[code] for code in category]
    if family(source.dataset) != "imagenet":
        natives = source.images.native[located.position].tolist()
        names = [name or native for name, native in zip(names, natives, strict=True)]
    for name in (*dict.fromkeys(class_names), *names):
        safe_name(name, f"part {part}")
    if family(source.dataset) == "imagenet":
        names = [f"{source.part}/{wnid}/{name}" for wnid, name in zip(class_names, names, strict=True)]
    elif formula := next((name for name in names if name[0] in "=+-@"), None):
        expected = "a path that spreadsheets do not read as a formula"
        raise ExportError("A path begins like a formula", where=f"part {part}", expected=expected, found=formula[:80])
    return [(path, labels[name]) for path, name in zip(names, class_names, strict=True)]


def _chunks(rows: Sequence[tuple[str, int]]) -> Iterator[bytes]:
    """Yield the rows of a file in chunks of several thousand."""
    for start in range(0, len(rows), _ROWS):
        # The authors' layout, byte for byte: no cell is escaped, and none can be read as a formula, since no path
        # begins like one and each label is a number.
        text = io.StringIO(newline="")
        csv.writer(text).writerows(rows[start : start + _ROWS])
        yield text.getvalue().encode("utf-8")


FORMATS = (Format("imagenet-csv", lambda request: plan_imagenet_csv(request.manifest, request.parts, request.sources)),)
