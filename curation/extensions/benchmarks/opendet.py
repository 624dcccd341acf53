"""VOC-COCO, the open-set benchmark of OpenDet (Han et al., CVPR 2022): the lists as its authors published them."""

from curation.benchmarks.parts import voc_classes
from curation.benchmarks.published import drafts

RECIPES = drafts(__name__, classes=voc_classes())
"""The drafts of the published lists."""
