"""Operators of the App: a verdict with reason and reviewer, one button for each verdict, undo, next batch, export.

They check nothing themselves: every input goes to `curation.review.live_review`, and its errors come back as messages.
"""

from __future__ import annotations

import os
from typing import Any

import fiftyone.operators as foo
import fiftyone.operators.types as types

from curation.errors import CurationError
from curation.review.live_review import LiveReview, open_review, waiting_view
from curation.review.progress import progress_markdown
from curation.review.session import REVIEWER_VARIABLE
from curation.review.verdicts import ACTIONS, VERDICTS

ICONS = {
    "keep": "check_circle",
    "remove": "delete",
    "near": "call_received",
    "far": "call_made",
    "unsure": "help",
}


def usual_reviewer() -> str:
    """Return who reviews unless a form says otherwise: ``curation review start --reviewer``."""
    return os.environ.get(REVIEWER_VARIABLE, "")


def known_reasons(review: LiveReview) -> list[str]:
    """Return the reasons that a form offers: those of the proposals, as often as they occur, at most fifty."""
    counts = review.dataset.count_values("reason")
    reasons = sorted((one for one in counts if one), key=lambda one: (-counts[one], one))
    return reasons[:50]


def told(ctx: Any, error: CurationError) -> dict[str, Any]:
    """Show an error as a message of the App and return it as an operator's result."""
    text = error.what + (f". {error.hint[:1].upper()}{error.hint[1:]}" if error.hint else "")
    ctx.ops.notify(text, variant="error")
    return {"images": 0, "message": text, **error.as_dict()}


def decide(ctx: Any, verdict: Any, *, reason: Any, reviewer: Any) -> dict[str, Any]:
    """Give a verdict on what is selected, show it, and clear the selection."""
    try:
        review = open_review(ctx.dataset)
        done = review.decide(ctx.selected, str(verdict), reason=reason, reviewer=reviewer)
    except CurationError as error:
        return told(ctx, error)
    ctx.ops.notify(done.text, variant="success")
    # Else the next verdict would fall on these images once more.
    ctx.ops.clear_selected_samples()
    ctx.ops.reload_dataset()
    return {"images": done.images, "message": done.text}


def decide_as_asked(ctx: Any, verdict: Any) -> dict[str, Any]:
    """Give a verdict with the reason and the reviewer of an operator's form."""
    reviewer = ctx.params.get("reviewer") or usual_reviewer()
    return decide(ctx, verdict, reason=ctx.params.get("reason"), reviewer=reviewer)


def undo(ctx: Any, reviewer: Any) -> dict[str, Any]:
    """Take back a reviewer's last verdict and show it."""
    try:
        done = open_review(ctx.dataset).undo(reviewer)
    except CurationError as error:
        return told(ctx, error)
    ctx.ops.notify(done.text, variant="success" if done.images else "info")
    ctx.ops.reload_dataset()
    return {"images": done.images, "message": done.text}


def show_next_batch(ctx: Any, *, reviewer: Any, after: str = "") -> dict[str, Any]:
    """Show the next batch that waits for a reviewer."""
    try:
        review = open_review(ctx.dataset)
        batch = review.next_batch(reviewer=str(reviewer or "").strip(), after=after)
    except CurationError as error:
        return told(ctx, error)
    text = "Every image has a verdict" if batch is None else f"Batch {batch}"
    ctx.ops.notify(text, variant="info")
    if batch is not None:
        ctx.ops.clear_selected_samples()
        ctx.ops.set_view(view=waiting_view(ctx.dataset, batch))
    return {"batch": batch, "message": text}


def export(ctx: Any, name: Any) -> dict[str, Any]:
    """Write the standing decisions into the folder of the log."""
    try:
        path = open_review(ctx.dataset).export(name)
    except CurationError as error:
        return told(ctx, error)
    ctx.ops.notify(f"Written: {path.name}", variant="success")
    return {"path": str(path), "message": f"Written: {path}"}


def reviewer_field(inputs: Any) -> None:
    """Add the field for the reviewer's name; it may stay empty where one was named at the start."""
    usual = usual_reviewer()
    inputs.str("reviewer", label="Reviewer", required=not usual, default=usual or None)


def message_output(*names: str) -> Any:
    """Return the form that shows an operator's result."""
    outputs = types.Object()
    for name in names or ("message",):
        outputs.str(name, label=name.capitalize())
    return types.Property(outputs)


class _Shown(foo.Operator):
    """An operator with its name and label in the App, and its place above the grid where it has a `button`.

    The button shows the icon alone where it is `pictured`, else its text.
    """

    called = label = icon = ""
    button: str | None = None
    pictured = True
    dynamic = False

    @property
    def config(self) -> Any:
        """Return name, label and icon in the App."""
        return foo.OperatorConfig(name=self.called, label=self.label, icon=self.icon, dynamic=self.dynamic)

    def asks(self) -> bool:
        """Return whether a click opens a form."""
        return False

    def resolve_placement(self, ctx: Any) -> Any:
        """Return the place above the grid, None for none."""
        if self.button is None:
            return None
        icon = self.icon if self.pictured else None
        button = types.Button(label=self.button, icon=icon, prompt=self.asks())
        return types.Placement(types.Places.SAMPLES_GRID_ACTIONS, button)


class OpenReview(_Shown):
    """The review panel, beside the grid."""

    called, label, icon = "open_review", "Open the review panel", "fact_check"
    button, pictured = "Review", False

    def execute(self, ctx: Any) -> None:
        """Open it."""
        ctx.ops.open_panel("review_panel", layout="horizontal")


class Decide(_Shown):
    """A verdict on the selected images, with reason and reviewer."""

    called, label, icon = "decide", "Decide: verdict on selected images", "gavel"
    button, pictured, dynamic = "Decide", False, True

    def asks(self) -> bool:
        """Return whether a click opens the form."""
        return True

    def resolve_input(self, ctx: Any) -> Any:
        """Ask for verdict, reason and reviewer; tell where there is nothing to decide on."""
        inputs = types.Object()
        try:
            review = open_review(ctx.dataset)
        except CurationError as error:
            return _notice(inputs, error.what)
        count = len(ctx.selected)
        if not count:
            return _notice(inputs, "No image is selected. Tick images in the grid first.")
        inputs.message("selected", label=f"{count} {'image' if count == 1 else 'images'} selected")
        verdicts = list(ACTIONS[review.stage])
        inputs.enum(
            "verdict",
            verdicts,
            label="Verdict",
            required=True,
            view=types.RadioGroup(choices=[types.Choice(one, label=one) for one in verdicts]),
        )
        choices = types.AutocompleteView(choices=[types.Choice(one, label=one) for one in known_reasons(review)])
        inputs.str("reason", label="Reason", required=False, view=choices)
        reviewer_field(inputs)
        return types.Property(inputs, view=types.View(label="Verdict"))

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Record the verdict."""
        return decide_as_asked(ctx, ctx.params.get("verdict"))

    def resolve_output(self, ctx: Any) -> Any:
        """Return the form of a sentence on what was done."""
        return message_output()


class _Quick(_Shown):
    """One verdict on the selected images at one click, by the reviewer named at the start."""

    verdict = ""

    def __init_subclass__(cls) -> None:
        cls.called, cls.icon = cls.verdict, ICONS[cls.verdict]
        cls.label = cls.button = f"Verdict: {cls.verdict}"

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Record the verdict."""
        return decide_as_asked(ctx, self.verdict)


class Keep(_Quick):
    """The image stays where it is."""

    verdict = "keep"


class Remove(_Quick):
    """The image holds an in-distribution class, or is unfit otherwise: out of every split."""

    verdict = "remove"


class Near(_Quick):
    """The image is near out of distribution."""

    verdict = "near"


class Far(_Quick):
    """The image is far out of distribution."""

    verdict = "far"


class Unsure(_Quick):
    """The reviewer cannot tell."""

    verdict = "unsure"


class Undo(_Shown):
    """The reviewer's last verdict, taken back."""

    called, label, icon = "undo", "Undo my last verdict", "undo"
    button = label

    def asks(self) -> bool:
        """Return whether a click opens the form."""
        return not usual_reviewer()

    def resolve_input(self, ctx: Any) -> Any:
        """Ask whose verdict, where nobody was named at the start."""
        inputs = types.Object()
        reviewer_field(inputs)
        return types.Property(inputs, view=types.View(label="Undo my last verdict"))

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Take it back."""
        return undo(ctx, ctx.params.get("reviewer") or usual_reviewer())


class NextBatch(_Shown):
    """The next batch with an image that waits."""

    called, label, icon = "next_batch", "Next batch to review", "skip_next"
    button = label

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Show it."""
        after = ctx.params.get("after")
        reviewer = ctx.params.get("reviewer") or usual_reviewer()
        return show_next_batch(ctx, reviewer=reviewer, after=after if isinstance(after, str) else "")


class ExportDecisions(_Shown):
    """The standing decisions, written beside the log."""

    called, label, icon = "export_decisions", "Export decisions", "file_download"

    def resolve_input(self, ctx: Any) -> Any:
        """Ask for the name of the file."""
        inputs = types.Object()
        inputs.str("name", label="File name (.jsonl or .csv)", required=True, default="export.jsonl")
        return types.Property(inputs, view=types.View(label="Export decisions"))

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Write them."""
        return export(ctx, ctx.params.get("name"))

    def resolve_output(self, ctx: Any) -> Any:
        """Return the form that says where they lie."""
        return message_output()


class ReviewProgress(_Shown):
    """Progress by batch and reviewer, and agreement."""

    called, label, icon = "review_progress", "Review progress and agreement", "insights"

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Measure it."""
        try:
            progress = open_review(ctx.dataset).progress()
        except CurationError as error:
            return told(ctx, error)
        return {"text": progress_markdown(progress), "progress": progress.as_data()}

    def resolve_output(self, ctx: Any) -> Any:
        """Return the form of the tables."""
        outputs = types.Object()
        outputs.str("text", label="", view=types.MarkdownView())
        return types.Property(outputs)


def _notice(inputs: Any, text: str) -> Any:
    inputs.view("notice", types.Warning(label=text))
    return types.Property(inputs, invalid=True, error_message=text)


QUICK = (Keep, Remove, Near, Far, Unsure)
OPERATORS = (OpenReview, Decide, *QUICK, Undo, NextBatch, ExportDecisions, ReviewProgress)

assert tuple(one.verdict for one in QUICK) == VERDICTS  # noqa: S101
