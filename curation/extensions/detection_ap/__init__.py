"""COCO, LVIS and score-free evaluation of plain detection, and open-vocabulary AP."""
