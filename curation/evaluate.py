"""Score predictions by the rules of a benchmark.

Each benchmark has a function, loaded when it is first used: ``curation.evaluate.owod(truth=..., detections=...)``
scores by the rules of OWOD, and ``help(curation.evaluate.owod)`` explains all arguments. The functions are
``elephant``, ``findmeifyoucan``, ``imagenet``, ``imagenet200``, ``imagenetood``, ``imagenetx``, ``ninco``, ``nuowodb``,
``openmibood_midog``, ``openmibood_oasis3``, ``openmibood_phakir``, ``openood``, ``osod3``, ``ovcoco``,
``ovcoco_65_15``, ``owod``, ``rwd``, ``ssb``, ``v3det``, ``voc``, ``coco``, and those of other packages.

Truth and detections may be paths, COCO dictionaries or results, DataFrames, or FiftyOne views. The fields of a record
of options may be arguments themselves (``bad_boxes="drop"``). ``variant=("clean", "ore")`` chooses variants of the
measures, as ``--variant`` does on the command line.

Examples
--------
>>> import curation
>>> truth = {"images": [{"id": 1, "width": 50, "height": 50, "file_name": "1.jpg"}],
...          "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9],
...                           "area": 81, "iscrowd": 0}],
...          "categories": [{"id": 1, "name": "owl"}]}
>>> detections = [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.9}]
>>> curation.evaluate.voc(truth=truth, detections=detections)["mAP11"]
100.0
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from curation.evaluation.result import Result


def __getattr__(name: str) -> Callable[..., Result]:
    from curation.benchmarks.calls import python_function
    from curation.benchmarks.registry import evaluation_of, protocols

    if name.startswith("_") or name not in protocols():
        from difflib import get_close_matches

        near = [] if name.startswith("_") else get_close_matches(name, protocols(), 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise AttributeError(f"curation.evaluate has no benchmark {name!r}{hint}", name=name)
    function = python_function(evaluation_of(name), name)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    from curation.benchmarks.registry import protocols

    return sorted(protocols())
