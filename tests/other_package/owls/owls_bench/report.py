"""What the evaluation of owls measures."""

from curation.evaluation.measures import Measure
from curation.evaluation.result import Column, Report, Table, inputs_table
from curation.evaluation.voc import scored_of_plain


def tables(result):
    """Yield the tables of a result."""
    yield inputs_table(result.data)
    rows = list(result.data["AP_area"].items())
    yield Table("classes", (Column("class"), Column("AP", "share")), rows, title="Classes", file=True)


MEASURES = (
    Measure(
        "mAP_area",
        "mean average precision",
        "mean of AP over classes",
        unit="share",
        better="higher",
        ranked=True,
    ),
)
REPORT = Report("owls", MEASURES, scored_of_plain, tables, files=("classes",))
