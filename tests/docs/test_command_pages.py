"""The page of all commands is that of the parser."""

from tests.docs.command_pages import PAGE, page


def test_the_page_is_what_the_parser_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.docs.command_pages"
