"""What the open-world detection benchmarks state: papers, classes of the four tasks, label view of each purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from curation.manifest.header import ClassEntry, LabelView, Paper, TaskEntry
from curation.sources.coco_categories import COCO_CATEGORIES
from curation.sources.datasets import COCO_NAMES_OF_VOC

RE_OWOD_PAPER = Paper(
    title="Revisiting Open World Object Detection",
    authors="Xiaowei Zhao, Yuqing Ma, Duorui Wang, Yifan Shen, Yixuan Qiao, Xianglong Liu",
    year=2022,
    venue="arXiv 2201.00471",
    bibtex=(
        "@article{zhao2022revisiting, title={Revisiting Open World Object Detection}, author={Zhao, Xiaowei and "
        "Ma, Yuqing and Wang, Duorui and Shen, Yifan and Qiao, Yixuan and Liu, Xianglong}, "
        "journal={arXiv preprint arXiv:2201.00471}, year={2022}}"
    ),
)
ORE_PAPER = Paper(
    title="Towards Open World Object Detection",
    authors="K J Joseph, Salman Khan, Fahad Shahbaz Khan, Vineeth N Balasubramanian",
    year=2021,
    venue="CVPR",
    bibtex=(
        "@inproceedings{joseph2021towards, title={Towards Open World Object Detection}, author={Joseph, K J and "
        "Khan, Salman and Khan, Fahad Shahbaz and Balasubramanian, Vineeth N}, booktitle={Proceedings of the "
        "IEEE/CVF Conference on Computer Vision and Pattern Recognition (CVPR)}, year={2021}}"
    ),
)
OW_DETR_PAPER = Paper(
    title="OW-DETR: Open-world Detection Transformer",
    authors="Akshita Gupta, Sanath Narayan, K J Joseph, Salman Khan, Fahad Shahbaz Khan, Mubarak Shah",
    year=2022,
    venue="CVPR",
    bibtex=(
        "@inproceedings{gupta2022owdetr, title={OW-DETR: Open-world Detection Transformer}, author={Gupta, Akshita "
        "and Narayan, Sanath and Joseph, K J and Khan, Salman and Khan, Fahad Shahbaz and Shah, Mubarak}, "
        "booktitle={Proceedings of the IEEE/CVF Conference on Computer Vision and Pattern Recognition (CVPR)}, "
        "year={2022}}"
    ),
)

COCO_CLASSES: tuple[str, ...] = tuple(name for _, name, _ in COCO_CATEGORIES)
"""The 80 classes annotated on every image of COCO, in the order of their category ids."""
VOC_CLASSES: tuple[str, ...] = tuple(COCO_NAMES_OF_VOC.values())
"""COCO's names of the 20 classes annotated on every image of VOC, in VOC's order."""

_SPORT_AND_FOOD = (
    *("frisbee", "skis", "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard"),
    *("surfboard", "tennis racket", "banana", "apple", "sandwich", "orange", "broccoli", "carrot", "hot dog"),
    *("pizza", "donut", "cake"),
)

M_OWODB_TASKS: tuple[TaskEntry, ...] = (
    TaskEntry(name="t1", introduced=VOC_CLASSES),
    TaskEntry(
        name="t2",
        introduced=(
            *(
                "truck",
                "traffic light",
                "fire hydrant",
                "stop sign",
                "parking meter",
                "bench",
                "elephant",
                "bear",
            ),
            *("zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "microwave", "oven"),
            *("toaster", "sink", "refrigerator"),
        ),
    ),
    TaskEntry(name="t3", introduced=_SPORT_AND_FOOD),
    TaskEntry(
        name="t4",
        introduced=(
            *(
                "bed",
                "toilet",
                "laptop",
                "mouse",
                "remote",
                "keyboard",
                "cell phone",
                "book",
                "clock",
                "vase",
            ),
            *("scissors", "teddy bear", "hair drier", "toothbrush", "wine glass", "cup", "fork", "knife"),
            *("spoon", "bowl"),
        ),
    ),
)
"""The split of ORE's and RE-OWOD's published lists: VOC's classes first. It is not the one that Table 2 of the RE-OWOD
paper names (Person, Vehicle, Animal first)."""

S_OWODB_TASKS: tuple[TaskEntry, ...] = (
    TaskEntry(
        name="t1",
        introduced=(
            *(
                "airplane",
                "bicycle",
                "bird",
                "boat",
                "bus",
                "car",
                "cat",
                "cow",
                "dog",
                "horse",
                "motorcycle",
            ),
            *("sheep", "train", "elephant", "bear", "zebra", "giraffe", "truck", "person"),
        ),
    ),
    TaskEntry(
        name="t2",
        introduced=(
            *(
                "traffic light",
                "fire hydrant",
                "stop sign",
                "parking meter",
                "bench",
                "chair",
                "dining table",
            ),
            *("potted plant", "backpack", "umbrella", "handbag", "tie", "suitcase", "microwave", "oven"),
            *("toaster", "sink", "refrigerator", "bed", "toilet", "couch"),
        ),
    ),
    TaskEntry(name="t3", introduced=_SPORT_AND_FOOD),
    TaskEntry(
        name="t4",
        introduced=(
            *("laptop", "mouse", "remote", "keyboard", "cell phone", "book", "clock", "vase", "scissors"),
            *(
                "teddy bear",
                "hair drier",
                "toothbrush",
                "wine glass",
                "cup",
                "fork",
                "knife",
                "spoon",
                "bowl",
            ),
            *("tv", "bottle"),
        ),
    ),
)
"""The split of OW-DETR by super-category: animal, person, vehicle; appliance, accessory, outdoor, furniture; sports,
food; electronic, indoor, kitchen."""

TRAIN_VIEW = LabelView(known="keep", previous="drop", unknown="drop")
"""Only classes introduced in the task keep their boxes (Revisiting Open World Object Detection, section 3.1)."""
KNOWN_VIEW = LabelView(known="keep", previous="keep", unknown="drop")
"""Finetuning and validation: all classes known by the task, no unknown."""
TEST_VIEW = LabelView(known="keep", previous="keep", unknown="rename:unknown")
"""All classes known by the task; every other object becomes unknown."""


def class_entries(tasks: tuple[TaskEntry, ...]) -> tuple[ClassEntry, ...]:
    """Return the classes of some tasks, all known, indexed from 0 in task order, with VOC's names as aliases."""
    voc_names = {coco: voc for voc, coco in COCO_NAMES_OF_VOC.items() if coco != voc}
    names = [name for task in tasks for name in task.introduced]
    return tuple(
        ClassEntry(
            name=name,
            role="known",
            index=index,
            aliases=(voc_names[name],) if name in voc_names else (),
        )
        for index, name in enumerate(names)
    )


COCO_TRAIN, COCO_VAL, VAL_LIST = "coco-train2017", "coco-val2017", "val-list"
VOC_TRAINING, VOC_TEST = ("voc2007-trainval", "voc2012-trainval"), "voc2007-test"


@dataclass(frozen=True, slots=True)
class Split:
    """A benchmark over COCO, perhaps with VOC in its first task.

    Attributes
    ----------
    name, title : str
    has_validation : bool
        Whether its authors set validation images apart.
    first_train : tuple of str
        Sources that are wholly the training list of task 1.
    first_test : str
        Source that stands wholly at the head of the test list; then the test list takes the images of each later task
        in turn, instead of every annotated image.
    sizes : mapping of str to int
        Images of each list as published; ``tN-selection``: before validation images are taken out.
    digests : mapping of str to str
        Of the published lists with namespaces, where the rule fixes their order.
    """

    name: str
    title: str
    paper: Paper
    tasks: tuple[TaskEntry, ...]
    has_validation: bool
    sizes: Mapping[str, int] = field(default_factory=dict)
    place: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    first_train: tuple[str, ...] = ()
    first_test: str = ""


def _table_2() -> tuple[TaskEntry, ...]:
    """Return the row "semantic split" of Table 2, read literally: 18, 16, 20 and 26 classes."""
    groups = (
        ("t1", ("person", "vehicle", "animal"), ()),
        ("t2", ("outdoor", "accessory", "appliance"), ("truck",)),
        ("t3", ("sports", "food"), ()),
        ("t4", ("electronic", "furniture", "indoor", "kitchen"), ()),
    )
    return tuple(
        TaskEntry(
            name=name,
            introduced=tuple(
                category
                for _, category, group in COCO_CATEGORIES
                if category in extra or (group in supers and category != "truck")
            ),
        )
        for name, supers, extra in groups
    )


def _sized(kind: str, sizes: tuple[int, ...], first: int = 1) -> dict[str, int]:
    return {f"t{task}-{kind}": size for task, size in enumerate(sizes, start=first)}


SPLITS: dict[str, Split] = {
    split.name: split
    for split in (
        Split(
            name="reowod",
            title="RE-OWOD: four tasks over COCO",
            paper=RE_OWOD_PAPER,
            tasks=M_OWODB_TASKS,
            has_validation=True,
            sizes={
                **_sized("train", (91_903, 43_684, 37_677, 38_446)),
                **_sized("selection", (45_520, 39_402, 40_260), first=2),
                **_sized("val", (1000,) * 4),
                **_sized("test", (4952,) * 4),
            },
            place="Table 2; selections: ORE's training lists, from which these were cut",
            digests={
                "t1-train": "sha256:cb9f97e2bf80f280a01380485a54ef217b05b7f4c8ffac97bceb6fd52120a8b0",
                "t2-train": "sha256:648d380f42e57e767fa26b3e7002cba8be054ca86285436a798414c139863eca",
                "t3-train": "sha256:f1d82d0923e52fcb1561a77cb5d3563f5ba005cf5c17cb00948f9b13098b8bed",
                "t4-train": "sha256:8d9fc1a882851a4a9b911cb0dc7b8e4224d3078df5dd20f4e97c993acfee56b3",
                "t1-val": "sha256:a05a5c3c7daad82f87486932d830626a09750c3c7cf656cd5837365daedce846",
                "t2-val": "sha256:4165cbd524b1111fcdf07b6b0ea0a0c14a57a44683e03f2c62323882ccaa72b8",
                "t3-val": "sha256:8c0c9b541cb8e8d150f7ddba76020d18e1b085bfa3ecd20ad42c5b3b619d497d",
                "t4-val": "sha256:f31a5e1fbbf6d95861815e0eb87135dcc226bebeedd7c15f56ab9e01361cba61",
            },
        ),
        Split(
            name="table2",
            title="RE-OWOD: the classes of Table 2, read literally",
            paper=RE_OWOD_PAPER,
            tasks=_table_2(),
            has_validation=True,
        ),
        Split(
            name="m-owodb",
            title="M-OWODB (ORE): VOC, then three tasks over COCO",
            paper=ORE_PAPER,
            tasks=M_OWODB_TASKS,
            has_validation=False,
            sizes={
                **_sized("train", (16_551, 45_520, 39_402, 40_260)),
                **_sized("test-selection", (4952, 1914, 1642, 1738)),
            },
            place="ORE, Table 1",
            digests={
                "t1-train": "sha256:20353ea0756f6e3eeb3d3193b384d5b14d3f7ecc0e5f27d94cc9263d9bdd6fa2",
                "t2-train": "sha256:fca27cd1491887dcc01195a79c84d25c7986f2ac3cbf45963da2f24b16dc901d",
                "t3-train": "sha256:eb2a8f9a9e4107aceb831a2e1320f54a1f36bd378f9633ccba71841bd3f8f319",
                "t4-train": "sha256:502a39b103680d07d6e5f171e9ec5e1aab7b2741cd9a970eb2f9c1ae0f06aa5c",
            },
            first_train=VOC_TRAINING,
            first_test=VOC_TEST,
        ),
        Split(
            name="s-owodb",
            title="S-OWODB (OW-DETR): four tasks over COCO by super-category",
            paper=OW_DETR_PAPER,
            tasks=S_OWODB_TASKS,
            has_validation=False,
            sizes={
                **_sized("train", (89_490, 55_870, 39_402, 38_903)),
                **_sized("test", (4952,) * 4),
            },
            place="OW-DETR, table of the benchmark's composition",
            digests={
                "t1-train": "sha256:d239e2a3dcf6197cab5bcc51d7042f841ab9e3c27ee9bcfddf791dbecafda8f9",
                "t2-train": "sha256:1d295bfbd725a4515c68ed8f00b436344ad1687bf48694422f94592c0dcecdbe",
                "t3-train": "sha256:eb2a8f9a9e4107aceb831a2e1320f54a1f36bd378f9633ccba71841bd3f8f319",
                "t4-train": "sha256:32afdf08c5b484cc046599d9a2fb7566076810e2118675278742ce99579e3438",
            },
        ),
    )
}
"""The published splits by name."""
