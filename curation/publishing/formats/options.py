"""`FormatOptions`: the choices of an export that belong to one format each, for the command line and for Python."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal


@dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """Choices that belong to one format each.

    Attributes
    ----------
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
    id_form
        txt: coco:000000000139 (default), 000000000139, 000000000139.jpg or 139
    strict_layout
        elephant-json: only the authors' fields, without difficult flags and original classes
    class_tree
        findmeifyoucan: bbox_labels_600_hierarchy.json, to number Open Images' categories as published
    class_names
        findmeifyoucan: class-descriptions-boxable.csv
    """

    renumber: Literal["always", "auto", "never"] | None = None
    category_ids: Literal["auto", "dataset", "manifest"] | None = None
    unknown_id: Annotated[str | None, "ID"] = None
    sidecar: bool = False
    detectron2: bool = False
    unknown: Literal["last", "drop"] | None = None
    id_form: Literal["namespaced", "native", "file_name", "number"] | None = None
    strict_layout: bool = False
    class_tree: Path | None = None
    class_names: Path | None = None
