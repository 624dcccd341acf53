"""Every error says what, where, expected, found and what to try; and keeps its place in the tree."""

import inspect
import json

import pytest

from curation.core import errors
from curation.core.errors import CurationError

ALL = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, CurationError)]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_error_is_told_whole_and_as_data(kind: type[CurationError]) -> None:
    error = kind("It broke", where="a.json: images[3]", expected="a number", found="'x'", hint="curation list")
    assert str(error).splitlines() == [
        "It broke",
        "  where: a.json: images[3]",
        "  expected: a number",
        "  found: 'x'",
        "  try: curation list",
    ]
    data = json.loads(json.dumps(error.as_dict()))
    assert data == {
        "error": kind.__name__,
        "what": "It broke",
        "where": "a.json: images[3]",
        "expected": "a number",
        "found": "'x'",
        "hint": "curation list",
    }
    assert kind.__doc__
    assert error.exit_code in (1, 2)


def test_a_failed_check_exits_with_1_and_wrong_use_with_2() -> None:
    assert errors.DigestMismatchError("x").exit_code == 1
    assert errors.UsageError("x").exit_code == 2
    assert errors.ManifestError("x").exit_code == 2
