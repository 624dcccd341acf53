"""The index of docs/metrics.md leads from every headline number to a page that says what it is."""

import re
from collections.abc import Iterator

import pytest

from curation.benchmarks.registry import measures_of, protocols
from tests.docs.pages import text_of

ROW = re.compile(r"^\| ((?:`[a-z0-9_-]+`(?:, )?)+) \| .* \| (.*) \|$", re.MULTILINE)


def entries() -> Iterator[tuple[list[str], list[str], str]]:
    """Yield benchmarks, names of numbers and the page of each link of the index."""
    index = text_of("docs/metrics.md").partition("## Index\n")[2].partition("\n## ")[0]
    for benchmarks, cell in ROW.findall(index):
        for names, page in re.findall(r"\[([^\]]+)\]\(([a-z0-9_]+\.md)#", cell):
            yield re.findall(r"`([^`]+)`", benchmarks), re.findall(r"`([^`]+)`", names), f"docs/{page}"


@pytest.mark.parametrize(("names", "page"), [entry[1:] for entry in entries()], ids=str)
def test_each_name_of_the_index_is_defined_on_its_page(names: list[str], page: str) -> None:
    assert names
    for name in names:
        assert re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text_of(page)), name


@pytest.mark.parametrize("protocol", protocols())
def test_a_benchmark_is_in_the_index_with_its_first_measure(protocol: str) -> None:
    listed = {name for benchmarks, names, _ in entries() if protocol in benchmarks for name in names}
    assert listed & {measure.base for measure in measures_of(protocol)}
