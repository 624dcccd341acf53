from tests.docs.measure_tables import PAGE, page, tables


def test_the_page_of_metrics_says_what_the_declarations_say() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "python -m tests.docs.measure_tables --write"


def test_every_line_of_the_tables_has_all_cells() -> None:
    rows = [line.replace("\\|", "") for line in tables().split("\n") if line.startswith("| ")]
    assert len(rows) > 60
    assert {row.count("|") for row in rows} == {8}
