"""Protocols are found by name, and declare what they need."""

import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import msgspec
import pytest

from curation.benchmarks.benchmark import Parameter
from curation.benchmarks.registry import benchmarks, find_benchmark
from curation.core.errors import ProtocolError, UsageError
from curation.manifest.locate import manifest_folders
from curation.manifest.manifest import read_manifest
from curation.sources.source_specs import SourceSlot


def test_names_and_near_names() -> None:
    assert find_benchmark("elephant").paper.year == 2020
    with pytest.raises(UsageError, match="No such benchmark") as caught:
        find_benchmark("elefant")
    assert "did you mean elephant?" in str(caught.value)


@pytest.mark.parametrize("name", sorted(benchmarks()))
def test_declarations_are_whole(name: str) -> None:
    protocol = benchmarks()[name]
    assert protocol.name == name
    assert protocol.summary
    assert protocol.paper.bibtex.startswith("@")
    assert len({slot.name for slot in protocol.slots}) == len(protocol.slots)
    # These take any of their sources, and refuse to be built from none; or they consist of published lists.
    some = ("imagenet", "findmeifyoucan", "osod3", "ssb", "openood", "imagenetx", "imagenet200")
    assert any(slot.required for slot in protocol.slots) or name in some or protocol.build is None
    assert protocol.build is not None or protocol.recipes
    assert all(slot.meaning for slot in protocol.slots)
    for parameter in protocol.parameters:
        assert parameter.meaning
        parameter.read(parameter.default)
    for field in fields(protocol):
        assert not str(getattr(protocol, field.name)).startswith("curation."), field.name
    assert (ROOT / protocol.page).is_file()
    assert name in (ROOT / protocol.page).read_text(encoding="utf-8")


def test_what_a_benchmark_names_is_imported_when_it_is_asked_for() -> None:
    program = "import sys; from curation.benchmarks.registry import benchmarks; benchmarks(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "curation.benchmarks.registry" in loaded
    assert not {"numpy", "curation.signals.hierarchy", "curation.benchmarks.elephant.lists"} & set(loaded)


def test_a_name_that_cannot_be_imported_is_told() -> None:
    wrong = replace(find_benchmark("voc-coco"), build="no_such:build")
    with pytest.raises(UsageError, match=r"cannot be used.*\n.*voc-coco: build") as caught:
        _ = wrong.build
    assert "No module named 'no_such'" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "stated", "said"),
    [
        (SourceSlot, {"name": "test", "dataset": "coco", "requird": True}, "unknown field `requird`"),
        (Parameter, {"name": "size", "meaning": "images", "mots": 9}, "unknown field `mots`"),
        (Parameter, {"name": "size", "meaning": "images", "default": 9}, "Expected `str`"),
        (Parameter, {"name": "size", "meaning": "images", "least": 1}, "size: one of .* most with least"),
        (Parameter, {"name": "size", "meaning": "images", "pattern": "[0-9]"}, "pattern with expected"),
        (Parameter, {"name": "order", "meaning": "of ids", "choices": ["id"], "longest": 3}, "order: one of choices"),
    ],
)
def test_a_declaration_that_would_be_passed_over_is_refused(kind: type, stated: dict[str, object], said: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=said):
        msgspec.convert(stated, kind)


def test_a_default_is_one_of_the_choices() -> None:
    with pytest.raises(ProtocolError, match=r"Invalid value of order[\s\S]*id, name"):
        Parameter(name="order", meaning="of ids", choices=("id", "name"))


ROOT = Path(__file__).parents[2]
COMMITTED = {name: read_manifest(path).header for name, path in manifest_folders([ROOT / "manifests"]).items()}


@pytest.mark.parametrize("name", [key for key, one in COMMITTED.items() if one.rule.protocol in benchmarks()])
def test_the_parts_that_a_protocol_names_are_those_of_its_manifests(name: str) -> None:
    header = COMMITTED[name]
    stated = [
        re.compile(re.sub("[A-Z]+", "[a-z0-9._]+", re.escape(part)))
        for part, _ in benchmarks()[header.rule.protocol].parts
    ]
    for part in header.parts:
        assert any(pattern.fullmatch(part.name) for pattern in stated), part.name
