"""The FiftyOne plugin ``@curation/review``: its operators, and its review panel with verdicts by button, and undo.

They check nothing themselves: every input goes to `curation.review.app.live_review`, and its errors come back as
messages. Who gave a verdict is the reviewer that this server was started for, whatever a request says.
"""

from __future__ import annotations

from typing import Any

import fiftyone.operators as foo
import fiftyone.operators.types as types
from fiftyone.server.view import get_view

from curation.core.errors import CurationError
from curation.core.wording import counted
from curation.review.app.live_review import open_review, refused, reviewer_here, verdict_of
from curation.review.app.verdicts import ACTIONS, UNDO

ICONS = {"keep": "check_circle", "remove": "delete", "near": "call_received", "far": "call_made", "unsure": "help"}
KEYS = {"keep": "k", "remove": "r", "near": "n", "far": "f", "unsure": "u", UNDO: "z"}
"""As `review.js` listens for them."""


def judge_selected(ctx: Any, verdict: Any, *, reason: Any = None) -> dict[str, Any]:
    """Give a verdict on what is selected, or undo, as a button does: show it, and clear the selection."""
    try:
        done = verdict_of(ctx.dataset, ctx.params, ctx.selected, verdict, reason=reason)
    except (CurationError, OSError) as error:
        answer = refused(error)
        ctx.ops.notify(answer["message"], variant="error")
        return answer
    ctx.ops.notify(done["message"], variant="success" if done["ids"] else "info")
    if verdict != UNDO:
        # Else the next verdict would fall on these images once more.
        ctx.ops.clear_selected_samples()
    ctx.trigger("@curation/review/shown", params=done)
    # The dataset as a whole would be shown from its first image on.
    ctx.ops.reload_samples()
    return done


class _Shown(foo.Operator):
    """An operator with its name and label in the App."""

    called = label = ""
    unlisted = True

    @property
    def config(self) -> Any:
        """Return name and label in the App."""
        return foo.OperatorConfig(name=self.called, label=self.label, unlisted=self.unlisted)


class OpenReview(_Shown):
    """The review panel, beside the grid, by a button above it."""

    called, label, unlisted = "open_review", "Open the review panel", False

    def execute(self, ctx: Any) -> None:
        """Open it."""
        ctx.ops.open_panel("review_panel", layout="horizontal")

    def resolve_placement(self, ctx: Any) -> Any:
        """Return the button."""
        return types.Placement(types.Places.SAMPLES_GRID_ACTIONS, types.Button(label="Review", prompt=False))


class About(_Shown):
    """What `review.js` has to know of a dataset: nothing if it is not a review."""

    called, label = "about", "Review: what this dataset is"

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Return reviewer, verdicts of the stage, samples that the reviewer decided, and the count."""
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
        }


class InOrder(_Shown):
    """The images of the grid in its order, for the way from one to the next in the enlarged view."""

    called, label = "in_order", "Review: the images of this view"

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Return the samples of the view, sorted as the grid is."""
        request, view, sort = ctx.request_params, ctx.view, ctx.params.get("sort")
        if request.get("view_name") and (request.get("filters") or request.get("extended")):
            # FiftyOne's own answer is then the saved view, without what the sidebar filters in it.
            view = get_view(
                ctx.dataset,
                stages=request.get("view"),
                filters=request.get("filters"),
                extended_stages=request.get("extended"),
            )
        if isinstance(sort, dict) and ctx.dataset.has_field(str(sort.get("field"))):
            view = view.sort_by(str(sort["field"]), reverse=bool(sort.get("descending")))
        return {"ids": view.values("id")}


class ReviewPanel(foo.Panel):
    """Verdicts on the selected images, with a reason, and undo."""

    @property
    def config(self) -> Any:
        """Return name, label and icon in the App."""
        return foo.PanelConfig(
            name="review_panel",
            label="Review",
            icon="fact_check",
            help_markdown="Tick images in the grid, then press a key or click a verdict; press ? for the keys. Each "
            "verdict is in the decisions log at once.",
        )

    def on_change_selected(self, ctx: Any) -> None:
        """Show the number of selected images anew: FiftyOne renders after every event."""

    def render(self, ctx: Any) -> Any:
        """Return the panel's layout."""
        panel = types.Object()
        try:
            review = open_review(ctx.dataset)
            far = review.progress_text(reviewer_here())
        except CurationError as error:
            panel.md(f"### Review\n\n{error.what}", name="refused")
            return types.Property(panel, view=types.GridView(align_x="left", orientation="vertical", gap=2, pad=2))
        count = len(ctx.selected)
        panel.md(f"Decided: {far}", name="far")
        panel.str("reason", label="Reason, for the buttons below (optional)")
        selected = f"{counted(count, 'image')} selected" if count else "Tick images in the grid"
        panel.md(f"**{selected}**", name="selected")
        verdicts = panel.btn_group("verdicts")
        for verdict in ACTIONS[review.book.stage]:
            verdicts.btn(
                verdict,
                label=f"{verdict.capitalize()} ({KEYS[verdict]})",
                icon=ICONS[verdict],
                variant="contained",
                on_click=self.on_verdict,
                params={"verdict": verdict},
            )
        panel.btn("undo", label=f"Undo ({KEYS[UNDO]})", icon="undo", variant="outlined", on_click=self.on_undo)
        return types.Property(panel, view=types.GridView(align_x="left", orientation="vertical", gap=2, pad=2))

    def on_verdict(self, ctx: Any) -> None:
        """Give the verdict of a button, with the reason in the field above it."""
        judge_selected(ctx, ctx.params.get("verdict"), reason=ctx.panel.state.get("reason"))

    def on_undo(self, ctx: Any) -> None:
        """Take back the reviewer's last verdict."""
        judge_selected(ctx, UNDO)


def register(plugin: Any) -> None:
    """Register every operator and the panel; FiftyOne calls this when it loads the plugin."""
    for operator in (OpenReview, About, InOrder, ReviewPanel):
        plugin.register(operator)
