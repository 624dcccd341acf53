"""The FiftyOne plugin ``@curation/review``: what it registers; operators and panel are in `operators`."""

from __future__ import annotations

from typing import Any


def register(plugin: Any) -> None:
    """Register every operator and the panel; FiftyOne calls this when it loads the plugin."""
    from curation.review.app.plugin.operators import OPERATORS, ReviewPanel

    for operator in (*OPERATORS, ReviewPanel):
        plugin.register(operator)
