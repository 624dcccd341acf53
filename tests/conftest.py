"""Fixtures that several test folders share."""

import gc
import importlib
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import unpainted
from tests.fake_hub import WRITER, FakeHub, serving
from tests.protocols.drawn_source import Draw, drawn_source
from tests.review.app.database import database_uri, fiftyone, review_environment  # noqa: F401  (fixtures)
from tests.shell import Shell
from tests.signals.hierarchy.generate_wordnet import find_dict

# A loaded machine is slow, not wrong; and the same examples on every run, so that a failure can be met again.
settings.register_profile("curation", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("curation")


def pytest_collection_finish() -> None:
    """Spare the collector of garbage the modules and tests that are there for the whole run: it walks what is new."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the sets of real files first, the longest of all tests, then what needs Ray: one worker then starts it."""
    first = ("shared", "ray_session")
    items.sort(key=lambda item: [name not in getattr(item, "fixturenames", ()) for name in first])


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of real annotation files and golden results; the test skips where it is absent."""
    named = os.environ.get("CURATION_SHARED")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("real annotation files are absent: set CURATION_SHARED to the folder that holds data/ and golden/")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _parsed_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep parsed files for this run and all of its workers, never in the user's own cache: many read COCO's file."""
    base = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CURATION_CACHE", str((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"))
        yield


@pytest.fixture(scope="session")
def wordnet_folder() -> Path:
    """A dict folder of WordNet 3.0, from CURATION_WORDNET or Debian's package wordnet-base; the test skips without."""
    for named in (os.environ.get("CURATION_WORDNET"), "/usr/share/wordnet"):
        if named and (found := find_dict(Path(named))):
            return found
    pytest.skip("WordNet is not available: install wordnet-base, or set CURATION_WORDNET to its folder")


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    """Commands of ``curation``, and what they print."""
    return Shell(capsys)


@pytest.fixture
def browser_page() -> Iterator[Any]:
    """A page of a headless Chromium that talks to this machine only; the test skips where there is none."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is absent: pip install playwright")
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((found for one in names if (found := shutil.which(one))), None)
    if program is None:
        pytest.skip("no Chromium browser is at hand")
    options = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    options += ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    options.append("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=options)
        page = browser.new_page(viewport={"width": 1800, "height": 1000})
        page.set_default_timeout(60_000)
        yield page
        browser.close()


@pytest.fixture(name="unpainted")
def _unpainted() -> Iterator[None]:
    """No picture is painted: for tests that state nothing of pictures and would wait for them."""
    with unpainted.unpainted():
        yield


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """Ray on this machine, started once for all tests of a process; whoever asks for it finds it connected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray = pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
        environment = {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(Path(__file__).parents[1])}
        # A loaded machine is slow, not dead: Ray ends the process of whoever it takes for lost.
        environment["RAY_health_check_failure_threshold"] = "100"
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            patch.delenv("RAY_ADDRESS", raising=False)
            ray.init("local", num_cpus=2, object_store_memory=100 << 20, include_dashboard=False, log_to_driver=False)
            yield
            ray.shutdown()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    """A hub on this machine, with the token of one who may write; the real client talks to it."""
    huggingface_hub = pytest.importorskip("huggingface_hub")
    constants = importlib.import_module("huggingface_hub.constants")
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_TOKEN", WRITER)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        # What the client read from the environment when it was imported.
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-login"))
        huggingface_hub.close_session()
        yield hub
        huggingface_hub.close_session()


@pytest.fixture(scope="session")
def draw() -> Draw:
    """Return ``draw(dataset, part, {number: [class, …]}, names=…, flagged=…, presence=…)``: sources in memory."""
    return drawn_source
