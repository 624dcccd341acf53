"""VOC-COCO of OpenDet (CVPR 2022)."""
