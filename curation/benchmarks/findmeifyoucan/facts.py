"""What FindMeIfYouCan states: paper, ID classes, category tables, sizes of the lists and of the six splits."""

from __future__ import annotations

from collections.abc import Mapping

from curation.manifest.header import Paper
from curation.sources.datasets import COCO_NAMES_OF_VOC

PAPER = Paper(
    title="FindMeIfYouCan: Bringing Open Set metrics to near, far and farther Out-of-Distribution Object Detection",
    authors="Daniel Montoya, Aymen Bouguerra, Alexandra Gomez-Villa, Fabio Arnez",
    year=2025,
    venue="arXiv",
    bibtex=(
        "@article{montoya2025findmeifyoucan, title={FindMeIfYouCan: Bringing Open Set metrics to near, far and "
        "farther Out-of-Distribution Object Detection}, author={Montoya, Daniel and Bouguerra, Aymen and Gomez-Villa, "
        "Alexandra and Arnez, Fabio}, year={2025}}"
    ),
)

COCO_START, COCO_CANDIDATES, OPEN_IMAGES = "coco-val2017", "coco-train2017", "openimages"

KEPT = {
    "voc": {"coco-near": 296, "coco-far": 488, "openimages-near": 643, "openimages-far": 859},
    "bdd": {"coco-farther": 1873, "openimages-farther": 1695},
}
"""Images of each split that stem from the start list (Table 3; its two sources apart by arithmetic)."""
ADDED = {
    "voc": {"coco-near": 878, "coco-far": 450, "openimages-near": 265, "openimages-far": 320},
    "bdd": {"coco-farther": 0, "openimages-farther": 0},
}
"""Images of each split that a reviewer took from the candidates."""
START = {"voc": {"coco": 930, "openimages": 1761}, "bdd": {"coco": 1880, "openimages": 1761}}
"""Images of the lists that the benchmark starts from (VOS, ``…_rm_overlap``)."""
REQUIRED = {"coco-far": 450, "coco-near": 896, "openimages-far": 320, "openimages-near": 278}
"""Images that a split of VOC must contain by the recorded decisions."""
EXCLUDED = {
    "coco-far": 173,
    "coco-near": 105,
    "openimages-far": 310,
    "openimages-near": 17,
    "coco-farther": 8,
    "openimages-farther": 45,
}
"""Images that a split must not contain by the recorded decisions."""
SHARED = {"coco": 0, "openimages": 1}
"""Images that stand in the near and in the far split: one of Open Images does, by a slip of the decisions."""
AUTHORS_DECISIONS = "sha256:86b1e1e9e4a26c691e46d2cd9d643f63b81888c19e72205e119929409d0f01f4"
"""Digest of the recorded decisions (``manual_selection``) in the form that a manifest holds."""

OPEN_IMAGES_PERSON = (
    *("Person", "Human face", "Human arm", "Woman", "Human head", "Human hand", "Human hair", "Human nose"),
    *("Human ear", "Human mouth", "Human eye", "Human beard"),
)
"""Names of Table 5's first row in Open Images."""

VOC_ALIASES: Mapping[str, tuple[str, ...]] = {
    "aeroplane": ("airplane", "Airplane"),
    "bicycle": ("Bicycle",),
    "bird": ("Bird",),
    "boat": ("Boat",),
    "bottle": ("Bottle",),
    "bus": ("Bus",),
    "car": ("Car", "Taxi", "Van", "Limousine"),
    "cat": ("Cat",),
    "chair": ("Chair",),
    "cow": ("Cow", "Cattle"),
    "diningtable": ("dining table", "Dining table", "Kitchen & dining room table"),
    "dog": ("Dog",),
    "horse": ("Horse",),
    "motorbike": ("motorcycle", "Motorcycle"),
    "person": ("Person", "Human", "Man", "Woman", "Boy", "Girl"),
    "pottedplant": ("potted plant", "Potted plant", "Houseplant"),
    "sheep": ("Sheep",),
    "sofa": ("couch", "Couch"),
    "train": ("Train",),
    "tvmonitor": ("tv", "Television"),
}
"""VOC's classes as COCO and Open Images call them and their kinds (``VOC_CLASSES`` of the code, and three names that
Open Images really uses where the code names what it has not: Cattle, Houseplant, Kitchen & dining room table)."""

BDD_CLASSES = (
    *("pedestrian", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle", "traffic light"),
    "traffic sign",
)
BDD_ALIASES: Mapping[str, tuple[str, ...]] = {
    "pedestrian": ("person", "Person", "Human", "Man", "Woman", "Boy", "Girl"),
    "car": ("Car", "Taxi", "Van", "Limousine"),
    "truck": ("Truck",),
    "bus": ("Bus",),
    "train": ("Train",),
    "motorcycle": ("Motorcycle",),
    "bicycle": ("Bicycle",),
    "traffic light": ("Traffic light",),
    "traffic sign": ("stop sign", "Stop sign", "Traffic sign"),
}

VOC_IN_COCO = tuple(COCO_NAMES_OF_VOC.values())
"""The 20 categories of COCO that the start rule of VOC excludes."""
VOC_IN_OPEN_IMAGES = (
    *(
        "Person",
        "Human",
        "Human beard",
        "Man",
        "Woman",
        "Boy",
        "Girl",
        "Body part",
        "Bird",
        "Cat",
        "Cow",
        "Dog",
    ),
    *(
        "Horse",
        "Sheep",
        "Airplane",
        "Bicycle",
        "Bicycle wheel",
        "Boat",
        "Bus",
        "Car",
        "Taxi",
        "Van",
        "Limousine",
    ),
    *("Motorcycle", "Train", "Bottle", "Chair", "Dining table", "Potted plant", "Couch", "Television"),
)
"""``VOC_CLASSES`` of the code: a candidate that shows one of them is none."""
BDD_IN_COCO = (
    *("person", "bicycle", "car", "motorcycle", "bus", "train", "truck", "traffic light"),
    "stop sign",
)
"""The 9 categories of COCO that the start rule of BDD100k excludes; truck is among them, unlike for VOC."""
BDD_IN_OPEN_IMAGES = (
    *(
        "Person",
        "Human",
        "Human beard",
        "Man",
        "Woman",
        "Boy",
        "Girl",
        "Body part",
        "Bicycle",
        "Bicycle wheel",
    ),
    *("Bus", "Car", "Taxi", "Van", "Limousine", "Motorcycle", "Train", "Land vehicle"),
)

_AT_TABLE = "diningtable"
VOC_REMOVED_FROM_COCO: Mapping[str, str] = dict.fromkeys(
    ("spoon", "fork", "pizza", "sandwich", "cake", "hot dog", "wine glass", "knife"), _AT_TABLE
)
"""Table 5, completed from ``CATS_TO_REMOVE``: category and the ID class that its images may show. The paper prints
"Person" too, which the start rule has taken out already."""
VOC_REMOVED_FROM_OPEN_IMAGES: Mapping[str, str] = {
    **dict.fromkeys(OPEN_IMAGES_PERSON, "person"),
    **dict.fromkeys(("Salad", "Plate", "Broccoli", "Tableware", "Fork", "Spoon", "Baked goods"), _AT_TABLE),
    "Boat": "boat",
    "Houseplant": "pottedplant",
    "Flowerpot": "pottedplant",
    "Cat": "cat",
    "Bird": "bird",
}
"""Table 5, completed from ``CATS_TO_REMOVE``; bird stands in the code alone."""
BDD_REMOVED_FROM_OPEN_IMAGES: Mapping[str, str] = dict.fromkeys(OPEN_IMAGES_PERSON, "pedestrian")

VOC_NEAR_IN_COCO: Mapping[str, str] = {
    "zebra": "horse",
    "bench": "chair",
    **dict.fromkeys(("broccoli", "spoon", "fork", "carrot", "orange", "bowl", "apple", "cup"), _AT_TABLE),
    "laptop": "tvmonitor",
    "bed": "sofa",
    "bear": "dog",
    "vase": "pottedplant",
}
"""Table 6, completed from ``CATS_TO_NEAR_OOD``. Spoon and fork are removed too, and removal wins. Which ID class the
items of the dining table belong to is inferred: the table's cell is lost in the paper's text."""
VOC_NEAR_IN_OPEN_IMAGES: Mapping[str, str] = {
    **dict.fromkeys(("Jaguar", "Leopard", "Cheetah"), "cat"),
    "Clothing": "person",
    **dict.fromkeys(("Zucchini", "Food", "Knife"), _AT_TABLE),
    **dict.fromkeys(("Tablet computer", "Laptop"), "tvmonitor"),
    **dict.fromkeys(("Fox", "Dog"), "dog"),
    **dict.fromkeys(("Sea lion", "Rhinoceros", "Raccoon", "Harbor seal", "Hedgehog", "Otter"), "various"),
}
"""Table 6, completed from ``CATS_TO_NEAR_OOD``. "Dog" is an ID class: `curation.benchmarks.findmeifyoucan.overlap`
tells so."""
