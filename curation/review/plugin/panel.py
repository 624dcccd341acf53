"""The review panel: who reviews, how far, a reason for the buttons, and a button for each verdict."""

from __future__ import annotations

from typing import Any

import fiftyone.operators as foo
import fiftyone.operators.types as types

from curation.errors import CurationError
from curation.review.judging import reviewer_here
from curation.review.live_review import open_review
from curation.review.missing_boxes import count_drawn
from curation.review.plugin import operators
from curation.review.progress import as_text, progress_markdown
from curation.review.verdicts import ACTIONS, UNDO
from curation.wording import counted


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
            drawn = count_drawn(review.book.path).text()
        except CurationError as error:
            panel.md(f"### Review\n\n{error.what}", name="refused")
            return types.Property(panel, view=types.GridView(align_x="left", orientation="vertical", gap=2, pad=2))
        count = len(ctx.selected)
        panel.md(f"Reviewer **{as_text(reviewer) or 'nobody'}**: {far}", name="far")
        panel.str("reason", label="Reason, for the buttons below (optional)")
        selected = f"{counted(count, 'image')} selected" if count else "Tick images in the grid"
        panel.md(f"**{selected}**", name="selected")
        verdicts = panel.btn_group("verdicts")
        for verdict in ACTIONS[review.stage]:
            verdicts.btn(
                verdict,
                label=f"{verdict.capitalize()} ({operators.KEYS[verdict]})",
                icon=operators.ICONS[verdict],
                variant="contained",
                on_click=getattr(self, f"on_{verdict}"),
            )
        others = panel.btn_group("others")
        for name, label, icon in (
            ("undo", f"Undo ({operators.KEYS[UNDO]})", "undo"),
            ("next", "Next batch", "skip_next"),
            ("export", "Export", "file_download"),
        ):
            others.btn(name, label=label, icon=icon, variant="outlined", on_click=getattr(self, f"on_{name}"))
        panel.md(f"{progress}\n\n{as_text(drawn)}" if drawn else progress, name="progress")
        return types.Property(panel, view=types.GridView(align_x="left", orientation="vertical", gap=2, pad=2))

    def on_keep(self, ctx: Any) -> None:
        """Give the verdict keep."""
        _decide(ctx, "keep")

    def on_remove(self, ctx: Any) -> None:
        """Give the verdict remove."""
        _decide(ctx, "remove")

    def on_near(self, ctx: Any) -> None:
        """Give the verdict near."""
        _decide(ctx, "near")

    def on_far(self, ctx: Any) -> None:
        """Give the verdict far."""
        _decide(ctx, "far")

    def on_unsure(self, ctx: Any) -> None:
        """Give the verdict unsure."""
        _decide(ctx, "unsure")

    def on_undo(self, ctx: Any) -> None:
        """Take back the reviewer's last verdict."""
        operators.judge_selected(ctx, UNDO)

    def on_next(self, ctx: Any) -> None:
        """Show the next batch that waits for this reviewer."""
        shown = ctx.panel.state.get("batch")
        done = operators.show_next_batch(ctx, after=shown if isinstance(shown, str) else "")
        ctx.panel.state.set("batch", done.get("batch") or "")

    def on_export(self, ctx: Any) -> None:
        """Write the standing decisions beside the log."""
        operators.export(ctx, "export.jsonl")


def _decide(ctx: Any, verdict: str) -> None:
    operators.judge_selected(ctx, verdict, reason=ctx.panel.state.get("reason"))
