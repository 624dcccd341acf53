import subprocess
import sys

import pytest

pytest.importorskip("torch")
CODE = """
import importlib.util
if importlib.util.find_spec("torchvision") is None:
    print("absent")
else:
    from curation.similarity.open_clip import import_torchvision
    first, again = import_torchvision(), import_torchvision()
    import torch
    boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [1.0, 0.0, 3.0, 2.0]])
    print(first is again, round(float(first.ops.box_iou(boxes, boxes)[0, 1]), 6))
    print(tuple(first.transforms.functional.resize(torch.zeros(3, 8, 8), [4, 4]).shape))
"""


def test_torchvision_can_be_imported_and_used() -> None:
    # In a process of its own: what one import declares, all later ones find.
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", CODE], capture_output=True, text=True, timeout=120)
    if done.stdout.strip() == "absent":
        pytest.skip("torchvision is not installed")
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.split("\n")[:2] == ["True 0.333333", "(3, 4, 4)"]
