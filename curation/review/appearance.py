"""How a review dataset looks in the App: its own fields first, one colour for each verdict and role."""

from __future__ import annotations

from typing import Any, get_args

from curation.manifest.views import ROLES
from curation.proposals.proposal import Verdict as Proposed
from curation.review.evidence_fields import EVIDENCE_FIELDS, GROUND_TRUTH, VERDICT_FIELDS, proposed

# Okabe and Ito's palette: told apart by colour-blind readers too.
VERDICT_COLOURS = {
    "keep": "#009e73",
    "remove": "#d55e00",
    "near": "#e69f00",
    "far": "#0072b2",
    "unsure": "#999999",
    "conflict": "#cc79a7",
}
PROPOSAL_COLOURS = {
    proposed(word): colour
    for word, colour in {**VERDICT_COLOURS, "farther": "#56b4e9", "undecided": "#999999"}.items()
    if word in get_args(Proposed)
}
ROLE_COLOURS = dict(zip(ROLES, ("#009e73", "#f0e442", "#d55e00", "#999999", "#56b4e9"), strict=True))


def arrange_app(fiftyone: Any, dataset: Any, *, has_roles: bool) -> None:
    """Give the App's sidebar a group of the review's fields, show verdict and proposal, and colour by value.

    Boxes are coloured by role where they have one, by class else.
    """
    config = dataset.app_config
    ours = [field.name for field in (*VERDICT_FIELDS, *EVIDENCE_FIELDS)]
    groups = fiftyone.DatasetAppConfig.default_sidebar_groups(dataset)
    for group in groups:
        group.paths = [path for path in group.paths if path not in ours]
        group.expanded = group.name == "labels"
    review = fiftyone.SidebarGroupDocument(name="review", paths=ours, expanded=True)
    config.sidebar_groups = [review, *groups]
    shown = ["verdict", "proposal", GROUND_TRUTH]
    # Older releases of FiftyOne show labels only, whatever is asked.
    if hasattr(config, "active_fields") and hasattr(fiftyone.core.odm.dataset, "ActiveFields"):
        config.active_fields = fiftyone.core.odm.dataset.ActiveFields(paths=shown)
    config.color_scheme = fiftyone.ColorScheme(
        color_by="value",
        fields=[
            _coloured("verdict", VERDICT_COLOURS),
            _coloured("proposal", PROPOSAL_COLOURS),
            *([{**_coloured(GROUND_TRUTH, ROLE_COLOURS), "colorByAttribute": "role"}] if has_roles else []),
        ],
    )
    dataset.save()


def _coloured(path: str, colours: dict[str, str]) -> dict[str, Any]:
    return {
        "path": path,
        "valueColors": [{"value": value, "color": colour} for value, colour in colours.items()],
    }
