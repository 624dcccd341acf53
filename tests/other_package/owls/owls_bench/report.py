"""What the evaluation of owls measures."""

from curation.evaluation.measures import Measure
from curation.evaluation.result import Column, Report, Tidy

MEASURES = (
    Measure("mAP_area", "mean average precision", "mean of AP over classes", unit="%", better="higher", ranked=True),
)
TABLES = (Tidy("classes", (Column("class"), Column("AP", "%")), title="Classes"),)
REPORT = Report("owls", MEASURES, tidy=TABLES, places=(), files=("measures", "classes"))
