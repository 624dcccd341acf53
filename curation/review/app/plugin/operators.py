"""Operators of the App, and its review panel: verdicts by button, undo, next batch, export, progress.

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
from curation.review.app.live_review import judged, open_review, refused, reviewer_here, waiting_view
from curation.review.app.progress import as_text, progress_markdown
from curation.review.app.verdicts import ACTIONS, UNDO, VERDICTS

ICONS = {"keep": "check_circle", "remove": "delete", "near": "call_received", "far": "call_made", "unsure": "help"}
KEYS = {"keep": "k", "remove": "r", "near": "n", "far": "f", "unsure": "u", UNDO: "z"}
"""As `review.js` listens for them."""


def show_error(ctx: Any, error: CurationError | OSError) -> dict[str, Any]:
    """Show an error as a message of the App and return it as an operator's result."""
    answer = refused(error)
    ctx.ops.notify(answer["message"], variant="error")
    return answer


def judge_selected(ctx: Any, verdict: Any, *, reason: Any = None) -> dict[str, Any]:
    """Give a verdict on what is selected, or undo, as a button does: show it, and clear the selection."""
    try:
        done = judged(ctx.dataset, ctx.params, ctx.selected, verdict, reason=reason)
    except (CurationError, OSError) as error:
        return show_error(ctx, error)
    ctx.ops.notify(done["message"], variant="success" if done["ids"] else "info")
    if verdict != UNDO:
        # Else the next verdict would fall on these images once more.
        ctx.ops.clear_selected_samples()
    ctx.trigger("@curation/review/shown", params=done)
    # The dataset as a whole would be shown from its first image on.
    ctx.ops.reload_samples()
    return done


def show_next_batch(ctx: Any, *, after: str = "") -> dict[str, Any]:
    """Show what waits for the reviewer in the next batch where something does."""
    try:
        reviewer = reviewer_here(ctx.params)
        batch = open_review(ctx.dataset).next_batch(reviewer=reviewer, after=after)
    except CurationError as error:
        return show_error(ctx, error)
    text = "Every image has a verdict" if batch is None else f"Batch {batch}"
    ctx.ops.notify(text, variant="info")
    if batch is not None:
        ctx.ops.clear_selected_samples()
        ctx.ops.set_view(view=waiting_view(ctx.dataset, batch, reviewer))
    return {"batch": batch, "message": text}


def export(ctx: Any, name: Any) -> dict[str, Any]:
    """Write the standing decisions into the folder of the log."""
    try:
        path = open_review(ctx.dataset).export(name)
    except CurationError as error:
        return show_error(ctx, error)
    ctx.ops.notify(f"Written: {path.name}", variant="success")
    return {"path": str(path), "message": f"Written: {path}"}


class _Shown(foo.Operator):
    """An operator with its name and label in the App, and its place above the grid where it has a `button`.

    The button shows the icon, or the text where there is none.
    """

    called = label = icon = ""
    button: str | None = None
    unlisted = False

    @property
    def config(self) -> Any:
        """Return name, label and icon in the App."""
        return foo.OperatorConfig(name=self.called, label=self.label, icon=self.icon, unlisted=self.unlisted)

    def resolve_placement(self, ctx: Any) -> Any:
        """Return the place above the grid, None for none."""
        if self.button is None:
            return None
        button = types.Button(label=self.button, icon=self.icon or None, prompt=False)
        return types.Placement(types.Places.SAMPLES_GRID_ACTIONS, button)


class OpenReview(_Shown):
    """The review panel, beside the grid."""

    called, label, button = "open_review", "Open the review panel", "Review"

    def execute(self, ctx: Any) -> None:
        """Open it."""
        ctx.ops.open_panel("review_panel", layout="horizontal")


class About(_Shown):
    """What `review.js` has to know of a dataset: nothing if it is not a review."""

    called, label, unlisted = "about", "Review: what this dataset is", True

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

    called, label, unlisted = "in_order", "Review: the images of this view", True

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


class _Quick(_Shown):
    """One verdict on the selected images at one click, by the reviewer named at the start."""

    verdict = ""

    def __init_subclass__(cls) -> None:
        cls.called, cls.icon = cls.verdict, ICONS[cls.verdict]
        cls.label = cls.button = f"Verdict: {cls.verdict} ({KEYS[cls.verdict]})"

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Record the verdict."""
        return judge_selected(ctx, self.verdict)


class Undo(_Shown):
    """The reviewer's last verdict, taken back."""

    called, label, icon = "undo", "Undo my last verdict", "undo"
    button = f"{label} ({KEYS[UNDO]})"

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Take it back."""
        return judge_selected(ctx, UNDO)


class NextBatch(_Shown):
    """The next batch with an image that waits."""

    called, label, icon = "next_batch", "Next batch to review", "skip_next"
    button = label

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Show it."""
        after = ctx.params.get("after")
        return show_next_batch(ctx, after=after if isinstance(after, str) else "")


QUICK = tuple(type(word.capitalize(), (_Quick,), {"verdict": word}) for word in VERDICTS)
OPERATORS = (OpenReview, About, InOrder, *QUICK, Undo, NextBatch)


class ReviewPanel(foo.Panel):
    """Verdicts on the selected images, undo, next batch, export, progress and agreement."""

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
            reviewer = reviewer_here()
            far, progress = review.progress_text(reviewer), progress_markdown(review.progress())
        except CurationError as error:
            panel.md(f"### Review\n\n{error.what}", name="refused")
            return types.Property(panel, view=types.GridView(align_x="left", orientation="vertical", gap=2, pad=2))
        count = len(ctx.selected)
        panel.md(f"Reviewer **{as_text(reviewer) or 'nobody'}**: {far}", name="far")
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
        others = panel.btn_group("others")
        for name, label, icon in (
            ("undo", f"Undo ({KEYS[UNDO]})", "undo"),
            ("next", "Next batch", "skip_next"),
            ("export", "Export", "file_download"),
        ):
            others.btn(name, label=label, icon=icon, variant="outlined", on_click=getattr(self, f"on_{name}"))
        panel.md(progress, name="progress")
        return types.Property(panel, view=types.GridView(align_x="left", orientation="vertical", gap=2, pad=2))

    def on_verdict(self, ctx: Any) -> None:
        """Give the verdict of a button, with the reason in the field above it."""
        judge_selected(ctx, ctx.params.get("verdict"), reason=ctx.panel.state.get("reason"))

    def on_undo(self, ctx: Any) -> None:
        """Take back the reviewer's last verdict."""
        judge_selected(ctx, UNDO)

    def on_next(self, ctx: Any) -> None:
        """Show the next batch that waits for this reviewer."""
        batch = ctx.panel.state.get("batch")
        done = show_next_batch(ctx, after=batch if isinstance(batch, str) else "")
        ctx.panel.state.set("batch", done.get("batch") or "")

    def on_export(self, ctx: Any) -> None:
        """Write the standing decisions beside the log."""
        export(ctx, "export.jsonl")
