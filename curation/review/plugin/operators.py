"""Operators of the App: a verdict by button or form, undo, next batch, export.

They check nothing themselves: every input goes to `curation.review.live_review`, and its errors come back as messages.
Every verdict goes through `curation.review.judging`, as those of keys do; who gave it is the reviewer that this server
was started for, whatever a request says.
"""

from __future__ import annotations

from typing import Any

import fiftyone.operators as foo
import fiftyone.operators.types as types
from fiftyone.server.view import get_view

from curation.errors import CurationError
from curation.review.judging import judged, refused, reviewer_here
from curation.review.live_review import open_review, waiting_view
from curation.review.missing_boxes import open_boxes
from curation.review.verdicts import ACTIONS, UNDO, VERDICTS
from curation.wording import counted

ICONS = {
    "keep": "check_circle",
    "remove": "delete",
    "near": "call_received",
    "far": "call_made",
    "unsure": "help",
}
KEYS = {"keep": "k", "remove": "r", "near": "n", "far": "f", "unsure": "u", UNDO: "z"}
"""As `review.js` listens for them."""


def known_reasons(review: Any) -> list[str]:
    """Return the reasons that a form offers: those of the proposals, as often as they occur, at most fifty."""
    counts = review.dataset.count_values("reason")
    reasons = sorted((one for one in counts if one), key=lambda one: (-counts[one], one))
    return reasons[:50]


def told(ctx: Any, error: CurationError | OSError) -> dict[str, Any]:
    """Show an error as a message of the App and return it as an operator's result."""
    answer = refused(error)
    ctx.ops.notify(answer["message"], variant="error")
    return answer


def judge_selected(ctx: Any, verdict: Any, *, reason: Any = None) -> dict[str, Any]:
    """Give a verdict on what is selected, or undo, as a button does: show it, and clear the selection."""
    try:
        done = judged(ctx.dataset, ctx.params, ctx.selected, verdict, reason=reason)
    except (CurationError, OSError) as error:
        return told(ctx, error)
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
        return told(ctx, error)
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
        return told(ctx, error)
    ctx.ops.notify(f"Written: {path.name}", variant="success")
    return {"path": str(path), "message": f"Written: {path}"}


def message_output() -> Any:
    """Return the form that shows an operator's result."""
    outputs = types.Object()
    outputs.str("message", label="Message")
    return types.Property(outputs)


class _Shown(foo.Operator):
    """An operator with its name and label in the App, and its place above the grid where it has a `button`.

    The button shows the icon alone where it is `pictured`, else its text.
    """

    called = label = icon = ""
    button: str | None = None
    pictured = True
    dynamic = unlisted = False

    @property
    def config(self) -> Any:
        """Return name, label and icon in the App."""
        return foo.OperatorConfig(
            name=self.called, label=self.label, icon=self.icon, dynamic=self.dynamic, unlisted=self.unlisted
        )

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


class About(_Shown):
    """What `review.js` has to know of a dataset: nothing where it is no review."""

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
            "verdicts": list(ACTIONS[review.stage]),
            "decided": review.decided_by(reviewer),
            "told": review.progress_text(reviewer),
        }


class InOrder(_Shown):
    """The images of the grid in its order, for the way from one to the next in the enlarged view."""

    called, label, unlisted = "in_order", "Review: the images of this view", True

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Return the samples of the view, sorted as the grid is."""
        asked, view, sort = ctx.request_params, ctx.view, ctx.params.get("sort")
        if asked.get("view_name") and (asked.get("filters") or asked.get("extended")):
            # FiftyOne's own answer is then the saved view, without what the sidebar filters in it.
            view = get_view(
                ctx.dataset,
                stages=asked.get("view"),
                filters=asked.get("filters"),
                extended_stages=asked.get("extended"),
            )
        if isinstance(sort, dict) and ctx.dataset.has_field(str(sort.get("field"))):
            view = view.sort_by(str(sort["field"]), reverse=bool(sort.get("descending")))
        return {"ids": view.values("id")}


class Decide(_Shown):
    """A verdict on the selected images, with a reason."""

    called, label, icon = "decide", "Decide: verdict on selected images", "gavel"
    button, pictured, dynamic = "Decide", False, True

    def asks(self) -> bool:
        """Return whether a click opens the form."""
        return True

    def resolve_input(self, ctx: Any) -> Any:
        """Ask for verdict and reason; tell where there is nothing to decide on."""
        inputs = types.Object()
        try:
            review = open_review(ctx.dataset)
        except CurationError as error:
            return _notice(inputs, error.what)
        count = len(ctx.selected)
        if not count:
            return _notice(inputs, "No image is selected. Tick images in the grid first.")
        inputs.message("selected", label=f"{counted(count, 'image')} selected")
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
        return types.Property(inputs, view=types.View(label=f"Verdict of {reviewer_here() or 'nobody'}"))

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Record the verdict."""
        return judge_selected(ctx, ctx.params.get("verdict"), reason=ctx.params.get("reason"))

    def resolve_output(self, ctx: Any) -> Any:
        """Return the form of a sentence on what was done."""
        return message_output()


class _Quick(_Shown):
    """One verdict on the selected images at one click, by the reviewer named at the start."""

    verdict = ""

    def __init_subclass__(cls) -> None:
        cls.called, cls.icon = cls.verdict, ICONS[cls.verdict]
        cls.label = cls.button = f"Verdict: {cls.verdict} ({KEYS[cls.verdict]})"

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Record the verdict."""
        return judge_selected(ctx, self.verdict)


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
    button = f"{label} ({KEYS[UNDO]})"

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Take it back."""
        return judge_selected(ctx, UNDO)


def _drawn(ctx: Any) -> Any:
    """Return the drawn boxes of the dataset, for the reviewer of this server."""
    return open_boxes(ctx.dataset, open_review(ctx.dataset).book.path, reviewer_here(ctx.params))


class BoxesComplete(_Shown):
    """The reviewer's word that every unknown object of the image shown, or of the selected ones, is boxed."""

    called, label, icon = "boxes_complete", "Boxes: every unknown object is boxed", "done_all"
    complete = True

    def resolve_placement(self, ctx: Any) -> Any:
        """Return the place in the enlarged view."""
        button = types.Button(label=self.label, icon=self.icon, prompt=False)
        return types.Placement(types.Places.SAMPLES_VIEWER_ACTIONS, button)

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Write it into the log of drawn boxes."""
        shown = [ctx.current_sample] if ctx.current_sample else list(ctx.selected)
        return _told_of_boxes(ctx, lambda boxes: boxes.declare(shown, complete=self.complete))


class BoxesReopen(BoxesComplete):
    """That word, taken back."""

    called, label, icon = "boxes_reopen", "Boxes: some are missing still", "remove_done"
    complete = False


class UndoBox(BoxesComplete):
    """The reviewer's last edit of a box, taken back."""

    called, label, icon = "undo_box", "Boxes: undo my last edit", "undo"

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Take it back, in the log first."""
        return _told_of_boxes(ctx, lambda boxes: boxes.undo())


def _told_of_boxes(ctx: Any, done: Any) -> dict[str, Any]:
    try:
        text = done(_drawn(ctx))
    except (CurationError, OSError) as error:
        return told(ctx, error)
    ctx.ops.notify(text, variant="success")
    ctx.ops.reload_samples()
    return {"message": text}


class NextBatch(_Shown):
    """The next batch with an image that waits."""

    called, label, icon = "next_batch", "Next batch to review", "skip_next"
    button = label

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Show it."""
        after = ctx.params.get("after")
        return show_next_batch(ctx, after=after if isinstance(after, str) else "")


class ExportDecisions(_Shown):
    """The standing decisions, written beside the log."""

    called, label, icon = "export_decisions", "Export decisions", "file_download"

    def resolve_input(self, ctx: Any) -> Any:
        """Ask for the name of the file."""
        inputs = types.Object()
        inputs.str("name", label="File name (.jsonl or .csv)", required=False, default="export.jsonl")
        return types.Property(inputs, view=types.View(label="Export decisions"))

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Write them."""
        return export(ctx, ctx.params.get("name"))

    def resolve_output(self, ctx: Any) -> Any:
        """Return the form that says where they lie."""
        return message_output()


def _notice(inputs: Any, text: str) -> Any:
    inputs.view("notice", types.Warning(label=text))
    return types.Property(inputs, invalid=True, error_message=text)


QUICK = (Keep, Remove, Near, Far, Unsure)
BOXES = (BoxesComplete, BoxesReopen, UndoBox)
VERBS = (OpenReview, About, InOrder, Decide, *QUICK, Undo, NextBatch, ExportDecisions)
OPERATORS = (*VERBS, *BOXES)

assert tuple(one.verdict for one in QUICK) == VERDICTS  # noqa: S101
