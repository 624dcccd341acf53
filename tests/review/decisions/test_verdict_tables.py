"""Tables of others' verdicts: columns and codes by a map, every row accounted for, each refusal with its line."""

from pathlib import Path

import pytest

from curation.core.errors import CurationError
from curation.manifest.manifest import Manifest
from curation.review.decisions.from_files import report_decisions
from curation.review.decisions.verdict_tables import TableOptions, read_verdicts
from curation.sources.datasets import namespace_of

COLUMNS = ("image_id=image_location,action=decision",)
CODES = ("o=keep,i=remove", "I=remove,u=unsure")
HEAD = "index,image_location,decision"


def write(path: Path, *rows: str, head: str = HEAD) -> Path:
    path.write_text("".join(f"{row}\n" for row in (head, *rows)), encoding="utf-8")
    return path


def options(**changed: object) -> TableOptions:
    given = {"columns": COLUMNS, "codes": CODES, "blank": "skip", "dataset": "textures", "reviewer": "N", **changed}
    return TableOptions(**given)  # type: ignore[arg-type]


def test_every_row_is_accounted_for(tmp_path: Path) -> None:
    rows = ["0,t/images/banded/banded_0001.jpg,o", "1,t/images/banded/banded_0002.jpg,i",
            "2,t/images/woven/woven_0001.jpg,u", "5,t/images/woven/woven_0002.jpg,",
            "6,t/images/woven/woven_0003.jpg,I"]  # fmt: skip
    (file,) = read_verdicts([write(tmp_path / "textures.csv", *rows)], options(), namespace_of)
    assert [(one.code, one.action, one.rows) for one in file.codes] == [
        ("", "skip", 1), ("I", "remove", 1), ("i", "remove", 1), ("o", "keep", 1), ("u", "unsure", 1),
    ]  # fmt: skip
    assert (file.format, file.rows, len(file.decisions)) == ("table", 5, 4)
    assert [(one.image_id, one.action, one.reason) for one in file.decisions] == [
        ("dtd:banded/banded_0001", "keep", "o"),
        ("dtd:banded/banded_0002", "remove", "i"),
        ("dtd:woven/woven_0001", "unsure", "u"),
        ("dtd:woven/woven_0003", "remove", "I"),
    ]
    assert {(one.dataset, one.stage, one.reviewer) for one in file.decisions} == {("textures", "manual", "N")}


@pytest.mark.parametrize(
    ("dataset", "path", "image"),
    [
        ("textures", "texture/banded/banded_0002.jpg", "dtd:banded/banded_0002"),
        ("openimage_o", "openimages/v4_512/test/006912be6d87958c.jpg", "openimages:006912be6d87958c"),
        ("openimages", "006912be6d87958c", "openimages:006912be6d87958c"),
        ("imagenet_o", "d/n01443537/benthos_0.9994893.JPEG", "imagenet_o:n01443537/benthos_0.9994893"),
        ("inaturalist", "images/017c000530e08130.jpg", "inat_mos:017c000530e08130"),
        ("coco", "val2017/000000000139.jpg", "coco:000000000139"),
        ("coco", "139", "coco:000000000139"),
        ("mine", "a/b c/d.png", "mine:b_c/d"),
        ("mine", "d.png", "mine:d"),
        ("mine", "voc2007:000012", "voc2007:000012"),
    ],
)
def test_paths_become_stable_ids(tmp_path: Path, dataset: str, path: str, image: str) -> None:
    table = write(tmp_path / "t.csv", f"0,{path},o")
    (file,) = read_verdicts([table], options(dataset=dataset), namespace_of)
    assert file.decisions[0].image_id == image


def test_the_name_of_a_file_is_the_data_set_where_nothing_else_says_so(tmp_path: Path) -> None:
    table = write(tmp_path / "Caracal caracal (2).csv", "0,x/Caracal caracal/000-1.jpg,o")
    (file,) = read_verdicts([table], options(dataset=None), namespace_of)
    (one,) = file.decisions
    assert (one.dataset, one.image_id) == ("caracal_caracal_2", "caracal_caracal_2:Caracal_caracal/000-1")


def test_other_separators_and_columns_of_their_own(tmp_path: Path) -> None:
    semicolons = write(tmp_path / "a.csv", "d/banded/b1.jpg;no;anna;2025-03-01;blurred", head="path;ok;who;on;why")
    columns = ("image_id=path", "action=ok", "reviewer=who,date=on,reason=why")
    (file,) = read_verdicts([semicolons], options(columns=columns, codes=("no=remove",)), namespace_of)
    (one,) = file.decisions
    assert (one.reviewer, one.date, one.reason) == ("anna", "2025-03-01", "no: blurred")
    tabs = write(tmp_path / "b.tsv", "banded/b1.jpg\tremove", head="path\tverdict")
    (file,) = read_verdicts([tabs], options(columns=("image_id=path,action=verdict",), codes=()), namespace_of)
    assert (file.decisions[0].action, file.decisions[0].reason) == ("remove", "")


def test_quoted_headers_are_read(tmp_path: Path) -> None:
    """What spreadsheets and R write: every text in quotes."""
    quoted = write(
        tmp_path / "b.csv", '0;"t/banded/b1.jpg";"a";"o"', head='"index";"image_location";"said, by";"decision"'
    )
    (found,) = read_verdicts([quoted], options(), namespace_of)
    assert found.decisions[0].image_id == "dtd:banded/b1"


def test_rows_that_differ_are_a_conflict_and_rows_that_repeat_are_counted(tmp_path: Path) -> None:
    """The order of a table is no order in time: the later row does not replace the earlier one."""
    rows = ["0,a/b/1.jpg,i", "1,a/b/1.jpg,o", "2,a/b/2.jpg,o", "3,a/b/2.jpg,o", "4,a/b/3.jpg,o"]
    table = write(tmp_path / "t.csv", *rows)
    report = report_decisions((table,), table=options(dataset="mine"))
    told = report.files[0]
    assert told.repeated == ("mine:b/1", "mine:b/2")
    (conflict,) = report.resolution.conflicts
    assert conflict.votes == (("keep", ("",)), ("remove", ("",)))
    assert (report.resolution.repeated, report.resolution.superseded) == (1, 0)
    assert len(report.problems()) == 1
    with pytest.raises(CurationError, match="contradict each other on 1 image"):
        report.save(tmp_path / "out.jsonl")


REFUSED = [
    ({}, ["0,a/1.jpg,z", "1,a/2.jpg,z"], "'z' (2 rows)"),
    ({"blank": "error"}, ["0,a/1.jpg,"], "--on-error blank=skip"),
    ({"columns": ("image_id=path,action=decision",)}, ["0,a/1.jpg,o"], "index, image_location, decision"),
    ({"columns": ("image_id=image_location",)}, ["0,a/1.jpg,o"], "no action"),
    ({"columns": (*COLUMNS, "colour=index")}, ["0,a/1.jpg,o"], "'colour'"),
    ({"codes": ("o=explode",)}, ["0,a/1.jpg,o"], "keep, remove, to_near, to_far, unsure, skip"),
    ({"codes": ("o=keep", "o=remove")}, ["0,a/1.jpg,o"], "names 'o' twice"),
    ({"codes": ("keep",)}, ["0,a/1.jpg,o"], "--codes keep"),
    ({"columns": ()}, ["0,a/1.jpg,o"], "--key image_id=COLUMN"),
    ({"dataset": "My Set"}, ["0,a/1.jpg,o"], "'My Set'"),
    ({"reviewer": "Anna and Ben"}, ["0,a/1.jpg,o"], "row 2: reviewer"),
    ({}, ["0,../b/1.jpg,o"], "line 2"),
    ({}, ["0,a/1.jpg,o", "1,/b/1.jpg,o"], "line 3"),
    ({}, ["0,1.jpg,o"], "folders before the name"),
    ({}, ["0,a/1.jpg"], "row 2"),
    ({}, ["0,,o"], "names no image"),
    ({}, ["0,1.00E+238,o"], "spreadsheet"),
    ({}, ['0,"a/1.jpg,o'], "not CSV"),
    ({}, ["0,a/" + "x" * 1_000_000 + ".jpg,o"], "not CSV"),
    ({}, [], "no row"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "rows", "told"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_is_told_with_its_place(
    tmp_path: Path, changed: dict[str, object], rows: list[str], told: str
) -> None:
    table = write(tmp_path / "t.csv", *rows)
    with pytest.raises(CurationError) as refused:
        read_verdicts([table], options(**changed), namespace_of)
    assert told in str(refused.value)
    assert len(str(refused.value)) < 1000


def test_own_forms_are_read_as_ever_beside_tables(tmp_path: Path) -> None:
    row = '{"image_id": "dtd:a/1", "dataset": "textures", "stage": "manual", "action": "keep", "reviewer": "anna"}\n'
    (tmp_path / "own.jsonl").write_text(row)
    table = write(tmp_path / "t.csv", "0,a/1.jpg,o")
    own, other = read_verdicts([tmp_path / "own.jsonl", table], options(), namespace_of)
    assert (own.format, other.format) == ("jsonl", "table")
    assert own.decisions[0].image_id == other.decisions[0].image_id


def test_ids_are_those_of_the_part_that_a_data_set_names(base_folder: Path, base: Manifest, tmp_path: Path) -> None:
    first, second = base.ids("wilderness")[:2]
    names = [one.partition(":")[2] for one in (first, second)]
    table = write(tmp_path / "t.csv", f"0,train2017/{names[0]}.jpg,i", f"1,{int(names[1])},o", "2,7.jpg,o")
    report = report_decisions((table,), manifest=str(base_folder), table=options(dataset="wilderness"))
    assert [one.image_id for one in report.files[0].decisions] == [first, second, "coco:000000000007"]
    (part,) = report.coverage
    assert (part.part, part.total, part.unjudged) == ("wilderness", 2, part.images - 2)
    assert report.staleness is not None
    assert report.staleness.gone == ("coco:000000000007",)
