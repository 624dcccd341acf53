"""``curation inspect``: show the contents and mistakes of an annotation file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import msgspec

from curation.cli.output import Answer
from curation.cli.outputs import output_file
from curation.core.errors import UsageError
from curation.core.writing import write_bytes

GROUP = "Lists of others"
SUMMARY = "show what an annotation file holds, and why a score is zero"


def run(
    file: Annotated[str, "PATH"],
    /,
    *,
    image_set: Annotated[str, "SET"] = "",
    renumber: Annotated[Path | None, output_file(".json")] = None,
    detections: Path | None = None,
    mend: tuple[Annotated[str, "KEY=VALUE"], ...] = (),
    out: Annotated[Path | None, output_file(".json")] = None,
) -> Answer:
    """Print the contents of an annotation file; with --detections, their mistakes: why a score is near zero.

    Parameters
    ----------
    file
        what evaluate, init and build take: COCO JSON, a root of COCO, Roboflow, VOC or YOLO, rows, class folders, a
        table, the layouts of Open Images, CUB-200, MTSD and ImageNet, fiftyone:NAME
    image_set
        the part of a root with several parts (default: its test part, else its validation part)
    renumber
        write the file with new ids of images and annotations: mends files that were joined with repeated ids
    detections
        COCO results in any convention, a table (.csv), or a folder of YOLO's label files: prints mistakes in boxes,
        ids and scores, with the command that mends each
    mend
        with --out: KEY=VALUE, repeatable; of --detections image_ids, boxes, category_ids, scores, records, duplicates;
        without --detections boxes, records, crowd of FILE
    out
        the file to write, mended by --mend: COCO results (.json), whatever the detections are in, or annotations
    """
    if renumber is not None and detections is not None:
        raise UsageError("--renumber and --detections exclude each other", expected="one of them")
    if renumber is not None:
        return _renumbered(Path(file), renumber, image_set)
    if bool(mend) != (out is not None):
        raise UsageError(
            "--mend and --out belong together", hint=f"curation inspect {shlex.quote(file)} --detections FILE"
        )
    # The modules that read detections are slow to import.
    from curation.extensions.diagnosis import diagnosis

    if out is not None:
        return _mended(Path(file), detections, mend, out, image_set)
    report = diagnosis.inspect(Path(file), detections=detections, image_set=image_set)
    return Answer(report.data(), report.lines(), int(isinstance(report, diagnosis.Diagnosis) and bool(report.findings)))


def _mended(truth: Path, detections: Path | None, mends: tuple[str, ...], out: Path, part: str) -> Answer:
    from curation.extensions.diagnosis.diagnosis import mended, mended_annotations

    if detections is None:
        write_bytes(out, mended_annotations(truth, mends, part))
        return Answer({"file": str(out)}, [f"annotations written to {out}"])
    records = mended(truth, detections, mends, part)
    write_bytes(out, msgspec.json.encode(records))
    return Answer({"file": str(out), "records": len(records)}, [f"{len(records):,} detections written to {out}"])


def _renumbered(path: Path, out: Path, part: str) -> Answer:
    from curation.extensions.diagnosis.diagnosis import annotation_file
    from curation.extensions.diagnosis.truth_file import renumber

    file = renumber(annotation_file(path, part))
    file.save(out)
    counts = file.counts
    lines = [
        f"{counts['repeated_ids']:,} of {counts['image_ids']:,} image ids named several of {counts['images']:,} "
        f"images: {counts['images_concerned']:,} images had such an id",
        f"{counts['annotations_concerned']:,} of {counts['annotations']:,} annotations named such an id; "
        f"there were {counts['annotation_ids']:,} annotation ids",
        f"{file.runs} runs: every annotation names an image of the same run",
        f"written to {out}",
    ]
    return Answer({"file": str(out), "read": file.sha256, "runs": file.runs, **counts}, lines)
