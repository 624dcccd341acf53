"""The index of docs/metrics.md leads from every headline number to a page that says what it is."""

import re
from collections.abc import Iterator

import pytest

from curation.evaluation.post_hoc.methods import METHODS
from curation.evaluation.protocols import measures_of
from tests.docs.pages import text_of

PAGE = "docs/metrics.md"
INDEX = "## Index\n"
PROTOCOLS = ("elephant", "voc", "coco", "owod", "osod3", "findmeifyoucan", "imagenet")


def index_and_rest() -> tuple[str, str]:
    before, _, after = text_of(PAGE).partition(INDEX)
    index, _, rest = after.partition("\nNotation:")
    return index, before + rest


def rows() -> Iterator[tuple[str, list[str], str]]:
    """Yield protocol, names in back quotes, and page of each line of the index."""
    protocols = ""
    for line in index_and_rest()[0].splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[0].startswith("**"):
            protocols = cells[0]
        elif len(cells) == 4 and (target := re.search(r"\]\(([a-z0-9_]*(?:\.md)?)#", cells[3])):
            names = re.findall(r"`([^`]+)`", cells[1])
            yield protocols, names, f"docs/{target[1]}" if target[1] else PAGE


@pytest.mark.parametrize(
    ("names", "page"), [(names, page) for _, names, page in rows()], ids=lambda value: str(value)[:40]
)
def test_each_name_of_the_index_is_defined_on_its_page(names: list[str], page: str) -> None:
    assert names
    text = index_and_rest()[1] if page == PAGE else text_of(page)
    for name in names:
        assert re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text), name


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_ranked_measure_is_in_the_index(protocol: str) -> None:
    listed = {name for protocols, names, _ in rows() if f"`{protocol}`" in protocols for name in names}
    for measure in measures_of(protocol):
        steps = {step for path in measure.paths or ((measure.key,),) for step in path}
        assert steps & listed, measure.key


def test_every_post_hoc_score_has_its_formula() -> None:
    text = text_of("docs/ood_metrics.md")
    assert [name for name in METHODS if f"| `{name}` |" not in text] == []
