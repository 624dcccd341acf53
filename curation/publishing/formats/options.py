"""`ExportOptions`: what an export writes and how, for the command line and for Python."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

Format = Literal[
    "coco", "voc", "yolo", "txt", "owod", "elephant-json", "imagenet-csv", "imagefolder", "findmeifyoucan"
]


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What is written, and how.

    Attributes
    ----------
    part
        a part to write, a pattern such as 't*-test', or all; several go into one output (repeatable;
        owod takes all parts by default, findmeifyoucan all splits)
    each
        coco, voc, yolo: every part on its own, a file PART.json or a folder PART in --out
    format
        what to write
    renumber
        coco: new image ids 1..n, with tasks new annotation ids too; auto (default): only where ids of
        the sources collide
    category_ids
        coco: the dataset's own ids of classes, or their index in the manifest (0, 1, ... with tasks);
        auto (default): the dataset's own where all files of the manifest number classes alike
    unknown_id
        coco: category id of unknown; by default -1, or beside indices with tasks the number of classes;
        next: after the last class
    sidecar
        coco: also PART.original_categories.json with the class that each annotation had (never for a
        detector)
    detectron2
        coco: also PART.detectron2.py, which registers the file with detectron2; unknown then comes
        after the last class
    unknown
        yolo: unknown objects are the last class (default), or left out
    images
        yolo: folder of photos, to read sizes that the annotations lack; NAME is a source (repeatable);
        imagefolder: the folder that the links lead to
    id_form
        txt: coco:000000000139 (default), 000000000139, 000000000139.jpg or 139
    strict_layout
        elephant-json: only the authors' fields, without difficult flags and original classes
    class_tree
        findmeifyoucan: bbox_labels_600_hierarchy.json, to number Open Images' categories as published
    class_names
        findmeifyoucan: class-descriptions-boxable.csv
    """

    part: tuple[str, ...] = ()
    each: bool = False
    format: Format
    renumber: Literal["always", "auto", "never"] | None = None
    category_ids: Literal["auto", "dataset", "manifest"] | None = None
    unknown_id: Annotated[str | None, "ID"] = None
    sidecar: bool = False
    detectron2: bool = False
    unknown: Literal["last", "drop"] | None = None
    images: tuple[Annotated[str, "[NAME=]ROOT"], ...] = ()
    id_form: Literal["namespaced", "native", "file_name", "number"] | None = None
    strict_layout: bool = False
    class_tree: Path | None = None
    class_names: Path | None = None
