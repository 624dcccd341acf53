"""What pip installs is whole: the manifests are in it, and every extra is one that some module uses."""

import ast
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.test_layers import imports, modules

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COMMITTED = {
    path.relative_to(ROOT / "manifests").as_posix() for path in (ROOT / "manifests").rglob("*.*") if path.is_file()
}


def build(folder: Path, *arguments: str) -> Path:
    """Return the one file that a build backend makes in a folder, without a package index."""
    for name in ("pip", "hatchling"):
        pytest.importorskip(name, reason=f"{name} is absent: it builds the wheel")
    command = [sys.executable, "-m", *arguments]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=os.environ | {"PIP_NO_INDEX": "1"})
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked: what pip would put into site-packages."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder))
    wheel = build(folder, "pip", "wheel", *options, str(ROOT))
    site = tmp_path_factory.mktemp("site")
    shutil.unpack_archive(wheel, site, format="zip")
    return site


def run(site: Path, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command of an unpacked wheel in a folder, with nothing of this checkout in sight."""
    environment = {key: value for key, value in os.environ.items() if key != "CURATION_MANIFESTS"}
    environment |= {"PYTHONPATH": str(site), "CURATION_CACHE": str(folder / "cache")}
    command = [sys.executable, "-P", "-m", "curation", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_wheel_holds_every_file_of_the_package(installed: Path) -> None:
    files = [path for path in (ROOT / "curation").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert {path.suffix for path in files} >= {".py", ".toml", ".html", ".css", ".js", ".yml", ".md", ".json"}
    for path in files:
        assert (installed / path.relative_to(ROOT)).read_bytes() == path.read_bytes()


def test_the_wheel_holds_every_manifest_byte_for_byte(installed: Path) -> None:
    packed = installed / "curation" / "manifests"
    assert {path.relative_to(packed).as_posix() for path in packed.rglob("*.*") if path.is_file()} == COMMITTED
    for name in COMMITTED:
        assert (packed / name).read_bytes() == (ROOT / "manifests" / name).read_bytes()
    # Beside the package nothing: a folder named manifests in site-packages would be anybody's.
    assert {path.name for path in installed.iterdir() if "." not in path.name} == {"curation"}


def test_the_source_distribution_holds_them_too(tmp_path: Path) -> None:
    archive = build(tmp_path, "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path))
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert names >= {f"manifests/{name}" for name in COMMITTED}


def test_names_work_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    """Every verb that takes a manifest takes a packaged one by NAME and by NAME@VERSION."""

    def printed(*arguments: str) -> str:
        done = run(installed, tmp_path, *arguments)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    where = "import curation.manifest.locate as m; print(m.__file__)"
    site = subprocess.run(
        [sys.executable, "-P", "-c", where],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(site.stdout.strip()).is_relative_to(installed)
    data = json.loads(printed("list", "manifests", "--json"))
    assert {f"{one['name']}/{one['version']}/manifest.json" for one in data["manifests"]} == {
        name for name in COMMITTED if name.endswith("manifest.json")
    }
    assert "4,952" in printed("show", "elephant/val2017")
    assert json.loads(printed("show", "elephant/val2017@1.0.0", "--json"))["digest"].startswith("sha256:343e1b28")
    printed("verify", "elephant/val2017")
    printed("diff", "elephant/val2017", "elephant/val2017@1.0.0", "--strict")
    printed("audit", "elephant/val2017")
    printed("export", "elephant/val2017", "--part", "wilderness", "--format", "txt", "--out", "ids.txt")
    assert len((tmp_path / "ids.txt").read_text().split()) == 969
    printed("publish", "elephant/val2017", "--repo", "me/elephant", "--dry-run", "published")
    assert sorted(one.name for one in tmp_path.iterdir() if one.name != "cache") == ["ids.txt", "published"]


distributions_of_modules = cache(importlib.metadata.packages_distributions)


def canonical(name: str) -> str:
    """Return the name of a distribution in the one form that an index knows it by."""
    return re.sub(r"[-_.]+", "-", name).lower()


def is_a_text(word: str) -> bool:
    """Return whether some module holds a word as a text of its own."""
    texts = (text for path in modules() if f'"{word}"' in (text := path.read_text(encoding="utf-8")))
    nodes = (node for text in texts for node in ast.walk(ast.parse(text)))
    return any(isinstance(node, ast.Constant) and node.value == word for node in nodes)


def test_every_extra_is_used() -> None:
    """Extras contain only packages that a module imports or names."""
    used = {name.split(".")[0] for path in modules() for name in imports(path)}
    modules_of: dict[str, set[str]] = {}
    for module, distributions in distributions_of_modules().items():
        for one in distributions:
            modules_of.setdefault(canonical(one), set()).add(module)
    extras = PROJECT["optional-dependencies"]
    for extra in set(extras) - {"all", "dev", "mongo"}:
        for requirement in extras[extra]:
            name = canonical(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0])
            found = modules_of.get(name, used)
            assert found & used or any(map(is_a_text, found)), f"{extra}: {name}"
    (everything,) = extras["all"]
    assert set(re.findall(r"[a-z]+", everything)) - {"curation"} == set(extras) - {"all", "dev"}


BROUGHT_ALONG = {"markupsafe": "jinja2", "bson": "fiftyone", "pymongo": "fiftyone"}
BROUGHT_ALONG |= dict.fromkeys(("psutil", "graphql", "jsonpatch", "jsonpointer"), "fiftyone")
