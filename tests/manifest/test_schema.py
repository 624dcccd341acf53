"""schema.json says the same as header.py: what one refuses, the other refuses, and no field is missing from either."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from curation.core.errors import ManifestError
from curation.manifest import header as header_module
from curation.manifest.header import DIGEST, Header, header_as_data
from curation.manifest.manifest import Manifest, StoredHeader, manifest_files, read_manifest
from curation.manifest.validation import check_header

SCHEMA = json.loads(Path(header_module.__file__).with_name("schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
RECORDS = {
    "FileEntry": "file",
    "SourceEntry": "source",
    "ClassEntry": "class",
    "PartEntry": "part",
    "LabelView": "label_view",
    "Figure": "figure",
    "TaskEntry": "task",
}
LATER = {"tasks", "exhaustive", "task", "repeats", "previous", "depiction"}
"""Fields that the schema gained later: left out where they hold their default."""


def stored_data(manifest: Manifest) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(manifest_files(manifest)["manifest.json"])
    return data


def full(manifest: Manifest) -> dict[str, Any]:
    """Return stored data in which every field is filled."""
    data = stored_data(manifest)
    data["sources"][0]["exhaustive"] = ["cat", "aeroplane"]
    data["parts"][0] |= {"task": "t1", "order": "listed", "repeats": 1}
    data["parts"][0]["view"]["previous"] = "drop"
    return {
        **data,
        "origin": "as_published",
        "tasks": [{"name": "t1", "introduced": ["cat"]}, {"name": "t2", "introduced": ["aeroplane"]}],
        "decisions": "sha256:" + "a" * 64,
        "completes": "sha256:" + "b" * 64,
        "supersedes": {"version": "0.9.0", "digest": "sha256:" + "c" * 64, "reason": "a fix"},
        "figures": [{"name": "n", "paper": 1, "obtained": None, "place": "p", "explanation": "e"}],
        "notes": ["a note"],
    }


def is_accepted_by_reader(data: dict[str, Any]) -> bool:
    """Return whether types, structure and field rules accept the data, and no default had to be filled in."""
    try:
        stored = msgspec.json.decode(json.dumps(data), type=StoredHeader)
        header = Header(**{name: getattr(stored, name) for name in Header.__struct_fields__})
        again = {"digest": stored.digest, **header_as_data(header)}
        if json.dumps(again, sort_keys=True) != json.dumps(data, sort_keys=True):
            return False
        if not re.fullmatch(DIGEST, stored.digest):  # the reader compares it with the header's own digest
            return False
        check_header(header, where="")
    except (msgspec.ValidationError, ManifestError):
        return False
    return True


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value[:2]):
            yield from places(item, (*path, index))


def replaced(data: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(data)
    target: Any = changed
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return changed


def without(data: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    changed = copy.deepcopy(data)
    target: Any = changed
    for key in path[:-1]:
        target = target[key]
    del target[path[-1]]
    return changed


def value_at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_what_we_write_is_valid(manifest: Manifest) -> None:
    VALIDATOR.validate(stored_data(manifest))
    VALIDATOR.validate(full(manifest))


def test_a_manifest_with_boxes_of_reviewers_names_their_successor(manifest: Manifest, tmp_path: Path) -> None:
    overlay = {"sha256": "sha256:" + "d" * 64, "images": 2, "boxes": 3, "unnamed": 1}
    (tmp_path / "manifest.json").write_text(json.dumps({**stored_data(manifest), "overlay": overlay}))
    with pytest.raises(ManifestError, match="boxes that reviewers drew") as refused:
        read_manifest(tmp_path)
    assert "build the manifest again from that source" in str(refused.value.hint)


def test_both_refuse_every_wrong_type(manifest: Manifest) -> None:
    data = full(manifest)
    disagreements = []
    for path in places(data):
        for wrong in (None, True, -7, 1.5, "", "\x00 no such text /", [], [[]], {}, {"x": {}}):
            if not path or wrong == value_at(data, path):
                continue
            changed = replaced(data, path, wrong)
            by_schema, by_reader = VALIDATOR.is_valid(changed), is_accepted_by_reader(changed)
            # The reader knows more: references, uniqueness. It must never accept what the schema refuses.
            if by_reader and not by_schema:
                disagreements.append((path, wrong, "only the schema refuses"))
            if by_schema and not by_reader and not _is_between_fields(path, wrong):
                disagreements.append((path, wrong, "only the reader refuses"))
    assert disagreements == []


def _is_between_fields(path: tuple[Any, ...], wrong: Any) -> bool:
    """What no schema can say: a name must name something, and images and sha256 are null together."""
    if path in (("sources",), ("classes",), ("origin",)) or path[0] == "tasks":
        return True
    if path[0] == "classes" and path[-1] == "name":  # the tasks name the classes
        return True
    field = path[2] if path[0] == "parts" and len(path) > 2 else ""
    return field in ("sources", "subset_of", "task") or (field in ("images", "sha256") and wrong is None)


def test_both_refuse_a_missing_field(manifest: Manifest) -> None:
    data = full(manifest)
    free = {("rule", "parameters"), ("parts", 0, "boxes"), ("parts", 1, "boxes"), ("sources", 0, "dropped")}
    for path in places(data):
        if path and isinstance(path[-1], str) and path[:-1] not in free and path[-1] not in LATER:
            changed = without(data, path)
            assert not VALIDATOR.is_valid(changed), path
            assert not is_accepted_by_reader(changed), path


def test_both_refuse_an_unknown_field(manifest: Manifest) -> None:
    data = full(manifest)
    free = {("rule", "parameters"), ("sources", 0, "dropped")}
    for path in places(data):
        if isinstance(value_at(data, path), dict) and path not in free:
            changed = replaced(data, (*path, "surprise"), 1)
            assert not VALIDATOR.is_valid(changed), path
            assert not is_accepted_by_reader(changed), path


@pytest.mark.parametrize(("record", "definition"), sorted(RECORDS.items()))
def test_no_field_drifts(record: str, definition: str) -> None:
    generated = msgspec.json.schema(getattr(header_module, record))["$defs"][record]
    written = SCHEMA["$defs"][definition]
    assert list(written["properties"]) == list(generated["properties"])
    assert written["required"] == [name for name in generated["properties"] if name not in LATER]
    assert written["additionalProperties"] is False


def test_no_field_of_the_header_drifts() -> None:
    generated = msgspec.json.schema(StoredHeader)["$defs"]["StoredHeader"]
    assert set(SCHEMA["properties"]) == set(generated["properties"]) == set(SCHEMA["required"]) | {"tasks"}
    for name, kind in (("paper", "Paper"), ("rule", "Rule")):
        assert list(SCHEMA["properties"][name]["properties"]) == list(getattr(header_module, kind).__struct_fields__)
    supersedes = SCHEMA["properties"]["supersedes"]["anyOf"][0]
    assert list(supersedes["properties"]) == list(header_module.Supersedes.__struct_fields__)


def test_enumerations_are_those_of_the_header() -> None:
    definitions = msgspec.json.schema(Header)["$defs"]
    for record, field in (("ClassEntry", "role"), ("PartEntry", "role"), ("PartEntry", "order")):
        written = SCHEMA["$defs"][RECORDS[record]]["properties"][field]["enum"]
        # ``previous`` follows from the tasks: a role within a part, never written.
        assert sorted(written) == sorted(set(definitions[record]["properties"][field]["enum"]) - {"previous"})
    treatments = definitions["LabelView"]["properties"]["known"]["enum"]
    assert sorted(SCHEMA["$defs"]["treatment"]["enum"]) == sorted(treatments)
    origins = definitions["Header"]["properties"]["origin"]["enum"]
    assert sorted(SCHEMA["properties"]["origin"]["enum"]) == sorted(origins)
