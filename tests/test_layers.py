"""Imports run one way through the house (raw data → sources → manifest → publishing, evaluation → benchmarks → cli)."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "curation"
GROUND = {"version", "core"}
"""What every room may import."""
LISTS = GROUND | {"sources", "manifest"}
ALLOWED = {
    "core": GROUND,
    "sources": GROUND,
    "manifest": GROUND | {"sources"},
    "signals/hierarchy": LISTS,
    "signals/cooccurrence": GROUND | {"sources"},
    "signals/similarity": GROUND | {"sources"},
    "review/decisions": LISTS,
    "review/proposals": LISTS | {"signals/hierarchy", "signals/similarity", "review/decisions"},
    "publishing": LISTS | {"review/decisions"},
    "review/app": LISTS | {"signals/similarity", "review/decisions", "review/proposals"},
    "evaluation": LISTS,
    "benchmarks": LISTS
    | {
        "signals/hierarchy",
        "signals/cooccurrence",
        "signals/similarity",
        "review/decisions",
        "publishing",
        "evaluation",
    },
}
NINE = {name.partition("/")[0] for name in ALLOWED} | {"cli"}
EXTENSIONS = "extensions"


def home(name: str) -> str:
    """Return the room of a module: of signals/ and review/, with the folder in it."""
    parts = name.split(".")
    return "/".join(parts[1:3] if parts[1] in ("signals", "review") else parts[1:2])


BENCHMARKS = PACKAGE / "benchmarks"
FURTHER = PACKAGE / EXTENSIONS / "benchmarks"
OF_BENCHMARKS = sorted([*BENCHMARKS.rglob("*.py"), *FURTHER.rglob("*.py")])
ROOMS = {path.parent.name for path in BENCHMARKS.glob("*/__init__.py")} - {"rules"}
ROOMS |= {path.stem for folder in (BENCHMARKS, FURTHER) for path in folder.glob("*.toml")}
HEAVY = {"torch", "fiftyone", "open_clip", "nltk", "sklearn", "matplotlib", "pandas", "pycocotools", "ray"}
HEAVY |= {"pyarrow", "datasets", "huggingface_hub", "jinja2"}


@cache
def imports(path: Path, *, top_level_only: bool = False) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_a_folder_imports_only_what_stands_before_it(folder: str) -> None:
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        homes = {home(name) for name in imports(path) if name.startswith("curation.")}
        assert homes <= ALLOWED[folder] | {folder}, f"{path.relative_to(PACKAGE)} imports {homes - ALLOWED[folder]}"


def test_nothing_outside_the_extensions_imports_them() -> None:
    for path in modules():
        if path.relative_to(PACKAGE).parts[0] != EXTENSIONS:
            assert not {name for name in imports(path) if f"{name}.".startswith(f"curation.{EXTENSIONS}.")}, path


def test_nothing_else_stands_at_the_root() -> None:
    entries = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    files = {"__init__.py", "__init__.pyi", "__main__.py", "evaluate.py", "py.typed", "version.py"}
    assert entries == NINE | {EXTENSIONS} | files


@pytest.mark.parametrize("path", OF_BENCHMARKS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_benchmark_imports_another_and_what_they_share_imports_none(path: Path) -> None:
    own = {path.parent.name, path.stem} & ROOMS
    inside = re.compile(r"curation\.(?:extensions\.)?benchmarks\.(\w+)")
    found = {match[1] for name in imports(path) if (match := inside.match(name))}
    assert found & ROOMS <= own


@pytest.mark.parametrize("folder", ["evaluation", "publishing", "manifest", "extensions/audit", "sources"])
def test_no_engine_is_named_after_a_benchmark(folder: str) -> None:
    # ImageNet is a dataset too: its reader bears the dataset's name.
    papers = ROOMS - {"imagenet"} if folder == "sources" else ROOMS
    named = {path for path in (PACKAGE / folder).rglob("*") if papers & set(path.stem.split("_"))}
    assert not named


CODES = {"vos", "ore", "fmiyc", "owdetr", "ow detr", "prob", "fomo", "osod", "siren"}
PAPERS = re.compile(rf"(?<![a-z])({'|'.join(sorted((ROOMS | CODES) - {'imagenet'}))})(?![a-z])")
"""Names of benchmarks, and of papers' code."""


def identifiers(path: Path) -> set[str]:
    """Names in a module, and its texts that can be keys: one word each."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return names | {text for text in texts if re.fullmatch(r"[\w.-]+", text)}


@pytest.mark.parametrize("path", sorted((PACKAGE / "evaluation").rglob("*.py")), ids=lambda path: path.stem)
def test_no_engine_names_a_paper_in_a_key(path: Path) -> None:
    assert not {one for one in identifiers(path) if PAPERS.search(re.sub(r"[_.-]", " ", one.lower()))}


def test_nothing_but_the_program_and_the_demo_imports_the_command_line() -> None:
    allowed = {
        PACKAGE / "__main__.py",
        *(PACKAGE / "cli").rglob("*.py"),
        *(PACKAGE / EXTENSIONS / "demo").rglob("*.py"),
    }
    allowed |= {*(PACKAGE / EXTENSIONS).rglob("command.py")}
    for path in set(modules()) - allowed:
        assert not {name for name in imports(path) if f"{name}.".startswith("curation.cli.")}, path


# FiftyOne loads these itself: their classes are subclasses of its own.
PLUGIN = {PACKAGE / "review" / "app" / "plugin" / "__init__.py"}


@pytest.mark.parametrize("path", sorted(set(modules()) - PLUGIN), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_heavy_packages_are_imported_where_they_are_used(path: Path) -> None:
    at_top = {name.split(".")[0] for name in imports(path, top_level_only=True)}
    assert not at_top & HEAVY


def test_no_module_is_longer_than_800_lines() -> None:
    long = {str(path): lines for path in modules() if (lines := len(path.read_text().splitlines())) > 800}
    assert not long


def test_no_modules_import_each_other_in_a_circle() -> None:
    import networkx

    names = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in modules()}
    graph = networkx.DiGraph(
        (name, found)
        for name, path in names.items()
        for one in imports(path)
        for found in (one, one.rpartition(".")[0])
        if found in names and found != name
    )
    assert not [sorted(circle) for circle in networkx.strongly_connected_components(graph) if len(circle) > 1]
