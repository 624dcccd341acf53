from tests.docs.measure_tables import PAGE, page


def test_the_page_of_measures_says_what_the_declarations_say() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "python -m tests.docs.measure_tables --write"
