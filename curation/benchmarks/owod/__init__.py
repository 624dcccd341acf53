"""Open-world object detection: the tasks of ORE, OW-DETR and Revisiting Open World Object Detection."""
