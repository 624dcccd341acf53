"""The plan of an export: which format writes which parts, and from which options."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from curation.cli.source_options import pairs
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.manifest.manifest import Manifest
    from curation.publishing.formats.coco import CocoOptions
    from curation.publishing.formats.plan import Plan
    from curation.sources.source import Source

_JOINABLE = ("coco", "voc", "yolo")


def make_plan(options: argparse.Namespace, manifest: Manifest, sources: Mapping[str, Source]) -> Plan:
    """Return the plan of the parts in ``options.part``, joined in one output or, with ``--each``, one by one."""
    if options.each and options.format in _JOINABLE:
        from curation.publishing.formats.plan import joined_plans

        plans = {part: _plan(options, manifest, [part], sources) for part in options.part}
        return joined_plans(plans, folders=options.format != "coco")
    return _plan(options, manifest, options.part, sources)


def _plan(
    options: argparse.Namespace, manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]
) -> Plan:
    if options.format == "coco":
        from curation.publishing.formats.coco import plan_coco

        return plan_coco(manifest, parts, sources, _coco_options(options))
    if options.format == "voc":
        from curation.publishing.formats.voc import plan_voc

        return plan_voc(manifest, parts, sources)
    if options.format == "yolo":
        return _yolo_plan(options, manifest, parts, sources)
    if options.format == "txt":
        from curation.publishing.formats.id_lists import plan_lists

        return plan_lists(manifest, parts, sources, options.id_form or "namespaced")
    if options.format == "owod":
        from curation.benchmarks.owod.layout import plan_owod_layout

        return plan_owod_layout(manifest, parts, sources)
    if options.format == "imagenet-csv":
        from curation.benchmarks.imagenet.layout import plan_imagenet_csv

        return plan_imagenet_csv(manifest, parts, sources)
    if options.format == "findmeifyoucan":
        return _findmeifyoucan_plan(options, manifest, parts, sources)
    from curation.benchmarks.elephant.layout import plan_elephant_json

    files = _annotation_files(options, manifest, sources)
    return plan_elephant_json(manifest, parts, sources, files, strict_layout=bool(options.strict_layout))


def _coco_options(options: argparse.Namespace) -> CocoOptions:
    from curation.publishing.formats.coco import CocoOptions

    text = options.unknown_id
    number = "" if text is None else text.removeprefix("-")
    # Longer texts are no id either, and Python refuses to read numbers of thousands of digits.
    if text is not None and text != "next" and not (number.isdecimal() and len(number) < 100):
        raise UsageError("--unknown-id is not a number", expected="next, or a whole number", found=text[:40])
    return CocoOptions(
        renumber=options.renumber or "auto",
        category_ids=options.category_ids or "auto",
        unknown_id="manifest" if text is None else "next" if text == "next" else int(text),
        sidecar=bool(options.sidecar),
        detectron2=bool(options.detectron2),
    )


def _yolo_plan(
    options: argparse.Namespace, manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]
) -> Plan:
    from curation.publishing.formats.yolo import plan_yolo
    from curation.publishing.photos import photo_sizes

    sizes = None
    if options.images:
        roots = _photo_roots(options.images, list(sources))
        sizes = photo_sizes(manifest, parts, sources, roots)
    return plan_yolo(manifest, parts, sources, unknown=options.unknown or "last", sizes=sizes)


def _findmeifyoucan_plan(
    options: argparse.Namespace, manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]
) -> Plan:
    from curation.benchmarks.findmeifyoucan.categories import open_images_categories
    from curation.benchmarks.findmeifyoucan.layout import plan_findmeifyoucan

    given = (options.class_tree, options.class_names)
    if (given[0] is None) != (given[1] is None):
        raise UsageError("--class-tree FILE and --class-names FILE go together")
    table = open_images_categories(*given) if given[0] is not None else ()
    return plan_findmeifyoucan(manifest, parts, sources, table)


def _photo_roots(texts: Sequence[str], slots: Sequence[str]) -> dict[str, Path]:
    named = [text for text in texts if text.partition("=")[0] in slots and "=" in text]
    roots = {name: Path(path) for name, path in pairs(named, "--images").items()}
    others = [text for text in texts if text not in named]
    if len(others) > 1:
        raise UsageError(
            "--images names several folders for all sources",
            expected=" ".join(f"--images {slot}=ROOT" for slot in slots),
            found=", ".join(others)[:200],
        )
    return roots | ({"": Path(others[0])} if others else {})


def _annotation_files(
    options: argparse.Namespace, manifest: Manifest, sources: Mapping[str, Source]
) -> dict[str, Path]:
    """Return the annotation file of each source, where it is one file that can be found from ``--source``."""
    given = pairs(options.source, "--source")
    files: dict[str, Path] = {}
    for entry in manifest.header.sources:
        root = given.get(entry.name, given.get(entry.dataset))
        if root is None or entry.name not in sources:
            continue
        for record in sources[entry.name].files:
            candidates = [Path(root), Path(root) / record.name, Path(root) / "annotations" / record.name]
            found = [path for path in candidates if path.is_file()]
            if found:
                files[entry.name] = found[0]
    return files
