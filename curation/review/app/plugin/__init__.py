"""The FiftyOne plugin ``@curation/review``: the operators that its page, `review.js`, calls.

Decisions need no operator: the page sends them to the server of the review (`curation.review.app.live_review`).
"""

from __future__ import annotations

from typing import Any

import fiftyone.operators as foo
import msgspec
from fiftyone.server.view import get_view

from curation.core.errors import CurationError
from curation.review.app.live_review import open_review, reviewer_here
from curation.review.decisions.decision import ACTIONS


class _Shown(foo.Operator):
    """An operator with its name and label in the App."""

    called = label = ""

    @property
    def config(self) -> Any:
        """Return name and label in the App."""
        return foo.OperatorConfig(name=self.called, label=self.label, unlisted=True)


class About(_Shown):
    """The data that `review.js` needs of a dataset; empty if it is not a review."""

    called, label = "about", "Review: what this dataset is"

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Return the reviewer, the decisions of the stage, the guide, the decided samples and the progress."""
        try:
            review = open_review(ctx.dataset)
        except CurationError:
            return {}
        reviewer = reviewer_here()
        return {
            "reviewer": reviewer or "nobody",
            "verdicts": list(ACTIONS[review.book.stage]),
            "decided": review.decided_by(reviewer),
            "progress": review.progress_text(reviewer),
            "latest": review.latest(reviewer),
            "guide": msgspec.to_builtins(review.record.guide),
        }


class InOrder(_Shown):
    """The images of the grid in their order, for steps from one to the next in the enlarged view."""

    called, label = "in_order", "Review: the images of this view"

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Return the samples of the view, sorted as the grid is."""
        request, view, sort = ctx.request_params, ctx.view, ctx.params.get("sort")
        if request.get("view_name") and (request.get("filters") or request.get("extended")):
            # FiftyOne's own answer would be the saved view without the filters of the sidebar.
            view = get_view(
                ctx.dataset,
                stages=request.get("view"),
                filters=request.get("filters"),
                extended_stages=request.get("extended"),
            )
        if isinstance(sort, dict) and ctx.dataset.has_field(str(sort.get("field"))):
            view = view.sort_by(str(sort["field"]), reverse=bool(sort.get("descending")))
        return {"ids": view.values("id")}


def register(plugin: Any) -> None:
    """Register every operator; FiftyOne calls this when it loads the plugin."""
    for operator in (About, InOrder):
        plugin.register(operator)
