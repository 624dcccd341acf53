"""What the open-world detection benchmarks state: papers, classes of the four tasks, label view of each purpose."""

from __future__ import annotations

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
