"""The classes of COCO and VOC as the specifications print them, written out once more."""

COCO = {
    1: "person", 2: "bicycle", 3: "car", 4: "motorcycle", 5: "airplane", 6: "bus", 7: "train", 8: "truck", 9: "boat",
    10: "traffic light", 11: "fire hydrant", 13: "stop sign", 14: "parking meter", 15: "bench", 16: "bird",
    17: "cat", 18: "dog", 19: "horse", 20: "sheep", 21: "cow", 22: "elephant", 23: "bear", 24: "zebra",
    25: "giraffe", 27: "backpack", 28: "umbrella", 31: "handbag", 32: "tie", 33: "suitcase", 34: "frisbee",
    35: "skis", 36: "snowboard", 37: "sports ball", 38: "kite", 39: "baseball bat", 40: "baseball glove",
    41: "skateboard", 42: "surfboard", 43: "tennis racket", 44: "bottle", 46: "wine glass", 47: "cup", 48: "fork",
    49: "knife", 50: "spoon", 51: "bowl", 52: "banana", 53: "apple", 54: "sandwich", 55: "orange", 56: "broccoli",
    57: "carrot", 58: "hot dog", 59: "pizza", 60: "donut", 61: "cake", 62: "chair", 63: "couch",
    64: "potted plant", 65: "bed", 67: "dining table", 70: "toilet", 72: "tv", 73: "laptop", 74: "mouse",
    75: "remote", 76: "keyboard", 77: "cell phone", 78: "microwave", 79: "oven", 80: "toaster", 81: "sink",
    82: "refrigerator", 84: "book", 85: "clock", 86: "vase", 87: "scissors", 88: "teddy bear", 89: "hair drier",
    90: "toothbrush",
}  # fmt: skip
"""Category ids of COCO: 80 of 90 numbers."""
VOC = {
    "aeroplane": "airplane", "bicycle": "bicycle", "bird": "bird", "boat": "boat", "bottle": "bottle", "bus": "bus",
    "car": "car", "cat": "cat", "chair": "chair", "cow": "cow", "diningtable": "dining table", "dog": "dog",
    "horse": "horse", "motorbike": "motorcycle", "person": "person", "pottedplant": "potted plant",
    "sheep": "sheep", "sofa": "couch", "train": "train", "tvmonitor": "tv",
}  # fmt: skip
"""VOC's classes in their order, and what COCO calls them (Elephant, 1.2)."""
SPORTS_AND_FOOD = (
    "frisbee skis snowboard sports_ball kite baseball_bat baseball_glove skateboard surfboard tennis_racket banana "
    "apple sandwich orange broccoli carrot hot_dog pizza donut cake"
)
WORDS = {
    # RE-OWOD and ORE: section 2.1 of the open-world specification.
    "m-owodb": (
        " ".join(name.replace(" ", "_") for name in VOC.values()),
        "truck traffic_light fire_hydrant stop_sign parking_meter bench elephant bear zebra giraffe backpack umbrella "
        "handbag tie suitcase microwave oven toaster sink refrigerator",
        SPORTS_AND_FOOD,
        "bed toilet laptop mouse remote keyboard cell_phone book clock vase scissors teddy_bear hair_drier toothbrush "
        "wine_glass cup fork knife spoon bowl",
    ),
    # The row "semantic split" of Table 2, read literally: 18, 16, 20 and 26 classes (section 0).
    "table2": (
        "person bicycle car motorcycle airplane bus train boat bird cat dog horse sheep cow elephant bear zebra "
        "giraffe",
        "traffic_light fire_hydrant stop_sign parking_meter bench backpack umbrella handbag tie suitcase microwave "
        "oven toaster sink refrigerator truck",
        SPORTS_AND_FOOD,
        "tv laptop mouse remote keyboard cell_phone chair couch potted_plant bed dining_table toilet book clock vase "
        "scissors teddy_bear hair_drier toothbrush bottle wine_glass cup fork knife spoon bowl",
    ),
    # OW-DETR: section 5.1.
    "s-owodb": (
        "airplane bicycle bird boat bus car cat cow dog horse motorcycle sheep train elephant bear zebra giraffe truck "
        "person",
        "traffic_light fire_hydrant stop_sign parking_meter bench chair dining_table potted_plant backpack umbrella "
        "handbag tie suitcase microwave oven toaster sink refrigerator bed toilet couch",
        SPORTS_AND_FOOD,
        "laptop mouse remote keyboard cell_phone book clock vase scissors teddy_bear hair_drier toothbrush wine_glass "
        "cup fork knife spoon bowl tv bottle",
    ),
}
TASKS = {
    split: tuple(tuple(word.replace("_", " ") for word in task.split()) for task in tasks)
    for split, tasks in WORDS.items()
}
TASKS["reowod"] = TASKS["m-owodb"]
BDD = ("person", "bicycle", "car", "motorcycle", "bus", "train", "truck", "traffic light", "stop sign")
"""COCO's categories that the start rule of BDD excludes (FindMeIfYouCan, 1.1)."""
REMOVED = ("spoon", "fork", "pizza", "sandwich", "cake", "hot dog", "wine glass", "knife")
NEAR = (
    "zebra", "bench", "broccoli", "spoon", "fork", "carrot", "orange", "bowl", "apple", "cup", "laptop", "bed", "bear",
    "vase",
)  # fmt: skip
"""COCO's categories that remove an image from VOC's OOD splits, and that make it near (1.3, tables 5 and 6)."""
