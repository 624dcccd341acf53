"""torchvision beside a torch that its compiled operators were not built for (a CPU build of torch, say)."""

from __future__ import annotations

import importlib
from typing import Any

_KEPT: list[Any] = []
"""Libraries of declared operators: they vanish with their last reference."""
_MISSING = ("nms", "qnms")


def import_torchvision() -> Any:
    """Return the module ``torchvision``; where its compiled operators cannot be loaded, those it asks for are declared.

    Declared operators have no code: transforms, models and `box_iou` work, ``torchvision.ops.nms`` fails when called.
    With a torchvision that fits its torch this is a plain import. A second call changes nothing.

    Raises
    ------
    ImportError
        torchvision or torch is not installed.
    RuntimeError
        It cannot be imported for another reason.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if _KEPT or "torchvision::nms does not exist" not in str(error):
            raise
    _declare()
    return importlib.import_module("torchvision")


def _declare() -> None:
    torch: Any = importlib.import_module("torch")
    # "FRAGMENT" may stand beside another declaration of the namespace; "DEF" may not.
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in _MISSING:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _KEPT.append(library)
