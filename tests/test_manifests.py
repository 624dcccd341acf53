"""The manifests of this repository: each is whole, exact where it lists images, and can be made again."""

import json
import shutil
import subprocess
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pytest

from curation.benchmarks.building import is_approximate
from curation.cli import main
from curation.core.errors import MissingListError
from curation.manifest.locate import available_manifests, load_manifest, manifest_folders
from curation.manifest.manifest import read_manifest
from tests.docs.manifest_tables import PAGE, page
from tests.real_files import real_files
from tests.shell import Shell

ROOT = Path(__file__).parents[1] / "manifests"
FOLDERS = manifest_folders([ROOT])
SOURCES = {"voc2007-test": "data/voc2007/test_with_difficult.json", "coco": "data/coco/instances_val2017_rebuilt.json"}


@pytest.mark.parametrize("name", FOLDERS)
def test_each_is_whole_and_lies_where_its_name_says(name: str) -> None:
    manifest = read_manifest(FOLDERS[name])
    header = manifest.header
    assert name == f"{header.name}@{header.version}"
    assert all(bool(figure.explanation) == (figure.paper != figure.obtained) for figure in header.figures)
    assert not is_approximate(header)
    assert not any("APPROXIMATE" in note for note in header.notes)


def test_the_page_of_manifests_says_what_their_headers_say() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "python -m tests.docs.manifest_tables --write"


def test_the_recipe_of_open_images_is_one_line(tmp_path: Path, shell: Shell) -> None:
    (line,) = (line for line in PAGE.read_text(encoding="utf-8").split("\n") if "openimages=OPENIMAGES" in line)
    keys = [(entry.aliases[0], entry.name) for entry in load_manifest("osod3/openimages-animal-1").header.classes]
    root = tmp_path / "OPENIMAGES"
    root.mkdir()
    (root / "class-descriptions-boxable.csv").write_text("".join(f"{key},{name}\n" for key, name in keys))
    columns = "ImageID,LabelName,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
    for first, name in enumerate(("oidv6-train", "validation", "test")):
        rows = [f"{1000 * first + n:016x},{key},0.1,0.5,0.1,0.5,0,0,0,0,0" for n, (key, _) in enumerate(keys)]
        (root / f"{name}-annotations-bbox.csv").write_text("\n".join([columns, *rows, ""]))
    words = [word.replace("OPENIMAGES", str(root)) for word in line.split()[1:-1]]
    shell.out(*words, tmp_path / "animal-1")
    assert len(read_manifest(tmp_path / "animal-1").ids("test")) == 96


def test_list_says_whose_they_are_and_whether_ids_are_inside(shell: Shell) -> None:
    rows = {line.split()[0]: line for line in shell.out("list", "manifests").splitlines() if "@" in line}
    assert "WACV 2020" in rows["elephant/val2017@1.0.0"]
    assert "3 of 3" in rows["elephant/val2017@1.0.0"]
    assert "2 of 4" in rows["elephant/train2017@1.1.0"]
    assert "0 of 3" in rows["osod3/openimages-animal-1@2.0.0"]
    # A name that two lines share cannot be copied.
    assert {row["name"] for row in available_manifests()} <= {name.partition("@")[0] for name in rows}
    assert max(map(len, rows.values())) <= 120


def test_no_command_is_advised_for_data_that_nothing_reads() -> None:
    with pytest.raises(MissingListError) as caught:
        load_manifest("ssb/aircraft").ids("known")
    assert caught.value.hint is None


BROKEN = {
    # M-OWODB is ORE's benchmark: VOC's half of its test images shows 60 classes without annotation (LI1), and images of
    # several tasks stand in its list once for each (DS1).
    "owod/m-owodb@1.0.0": {"LI1", "DS1"},
    # As published, its validation lists carry unknown labels besides (AS2); LI1 needs the lists.
    "owod/m-owodb-published@1.0.0": {"AS2", "DS1"},
}
"""Rules that a manifest breaks without any source at hand; every other manifest breaks none."""


@pytest.mark.parametrize("name", FOLDERS)
def test_each_verifies(name: str, shell: Shell) -> None:
    assert shell.out("verify", FOLDERS[name]).endswith("verified\n")


@pytest.mark.parametrize("name", FOLDERS)
def test_each_breaks_only_the_rules_that_are_known_of(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["audit", str(FOLDERS[name]), "--json"])
    statements = json.loads(capsys.readouterr().out)["statements"]
    broken = {one["rule"] for one in statements if one["gravity"] in ("error", "warning")}
    assert broken == BROKEN.get(name, set())
    assert status == (1 if broken else 0)


@real_files("coco_manifests")
def check_val2017_is_rebuilt_to_the_same_digest(shared: Path) -> None:
    given = [f"--source={name}={shared / path}" for name, path in SOURCES.items()]
    folder = str(FOLDERS["elephant/val2017@1.0.0"])
    assert main(["verify", folder, *given, "--strict", "--rebuild"]) == 0


@real_files("coco_manifests")
def check_train2017_is_declared_again_to_the_same_digest(shared: Path, tmp_path: Path) -> None:
    committed = read_manifest(FOLDERS["elephant/train2017@1.1.0"])
    source = f"--source=voc2007-test={shared / SOURCES['voc2007-test']}"
    note = f"--source-note=voc2007-test={committed.header.sources[0].note}"
    out = tmp_path / "m"
    assert main(["build", "elephant", "--header-only", source, note, "--out", str(out)]) == 0
    assert read_manifest(out).digest == committed.digest


@real_files("coco_manifests")
@pytest.mark.parametrize("split", ["reowod", "s-owodb", "m-owodb"])
def check_open_world_benchmarks_are_declared_again_to_the_same_digest(shared: Path, tmp_path: Path, split: str) -> None:
    committed = read_manifest(FOLDERS[f"owod/{split}@1.0.0"])
    paths = {"coco-val2017": SOURCES["coco"], "voc2007-test": SOURCES["voc2007-test"]}
    read = [entry for entry in committed.header.sources if entry.files]
    given = [f"--source={entry.name}={shared / paths[entry.name]}" for entry in read]
    notes = [f"--source-note={entry.name}={entry.note}" for entry in read]
    command = ["build", "owod", "--set", f"split={split}", "--header-only", *given, *notes]
    assert main([*command, "--out", str(tmp_path / "m")]) == 0
    assert read_manifest(tmp_path / "m").digest == committed.digest


@real_files("coco_manifests")
@pytest.mark.parametrize("pair", ["voc", "bdd"])
def check_near_far_and_farther_splits_are_declared_again_to_the_same_digest(
    shared: Path, tmp_path: Path, pair: str
) -> None:
    committed = read_manifest(FOLDERS[f"findmeifyoucan/{pair}@1.0.0"])
    source = f"--source=coco-val2017={shared / SOURCES['coco']}"
    note = f"--source-note=coco-val2017={committed.header.sources[0].note}"
    command = ["build", "findmeifyoucan", "--header-only", "--set", f"pair={pair}", source, note]
    assert main([*command, "--out", str(tmp_path / "m")]) == 0
    assert read_manifest(tmp_path / "m").digest == committed.digest


def test_no_start_list_of_others_is_here() -> None:
    for pair, size in (("voc", 969), ("bdd", 1914)):
        manifest = read_manifest(FOLDERS[f"findmeifyoucan/{pair}@1.0.0"])
        assert {name: len(ids) for name, ids in manifest.lists.items()} == {"coco-rule": size}


@real_files("coco_manifests")
def check_closed_part_is_the_published_test_list(shared: Path) -> None:
    published = str(shared / "data/voc2007/ImageSets/test.txt")
    for name, folder in FOLDERS.items():
        if name.startswith("elephant/") and (folder / "ids/closed.txt").exists():
            assert main(["verify", str(folder), "--published", published, "--part", "closed"]) == 0


@pytest.mark.parametrize(("version", "lists"), [("1.0.0", {"closed"}), ("1.1.0", {"closed", "wr1"})])
def test_no_full_wilderness_of_train2017_is_here(version: str, lists: set[str]) -> None:
    manifest = read_manifest(FOLDERS[f"elephant/train2017@{version}"])
    assert set(manifest.lists) == lists
    figures = {figure.name: figure.paper for figure in manifest.header.figures}
    assert (figures["wilderness.images"], figures["wr1.images"]) == (23008, 4952)


def test_wr1_is_a_minor_step(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT.parent)
    old, new = (FOLDERS[f"elephant/train2017@{version}"] for version in ("1.0.0", "1.1.0"))
    said = shell.data("diff", old, new, "--json")
    assert (said["verdict"], said["stated_step"]) == ("minor", "minor")
    link = read_manifest(new).header.supersedes
    assert link is not None
    assert (link.version, link.digest) == ("1.0.0", read_manifest(old).digest)
    assert load_manifest("elephant/train2017") == read_manifest(new)


def test_no_list_of_the_authors_is_here() -> None:
    published = [name for name, folder in FOLDERS.items() if read_manifest(folder).header.origin == "as_published"]
    assert {f"owod/{one}-owodb-published@1.0.0" for one in "ms"} | {"owod/reowod-published@1.0.0"} <= set(published)
    assert "elephant/wr1-prob-published@1.0.0" in published
    for name in published:
        assert [entry.name for entry in FOLDERS[name].iterdir()] == ["manifest.json"]


def test_every_digest_stands_on_the_page_of_the_manifests() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Digests")[2]
    assert all(f"{name} {read_manifest(folder).digest}" in page for name, folder in FOLDERS.items())


EDITED_IN_PLACE_UNTIL = datetime(2026, 11, 22, tzinfo=UTC)
"""19 manifests changed their digest under version 1.0.0 on 2026-11-21, before any release; none may since."""


def git(*words: str, data: bytes = b"") -> bytes:
    return subprocess.run(("git", "-C", str(ROOT.parent), *words), input=data, capture_output=True, check=True).stdout


def test_no_committed_manifest_changes_its_digest_under_an_equal_version() -> None:
    if shutil.which("git") is None or not (ROOT.parent / ".git").exists():
        pytest.skip("no git checkout: there is no history to read")
    if git("rev-parse", "--is-shallow-repository").strip() != b"false":
        pytest.skip("a shallow clone: its history is cut")
    changes = ("--name-only", "--no-renames", "--diff-filter=AM", "--", "manifests")
    log = git("log", "--reverse", "--format=commit %H %cI", *changes)
    places, commit, date = list[tuple[datetime, str]](), "", ""
    for line in log.decode().splitlines():
        if line.startswith("commit "):
            _, commit, date = line.split()
        elif line.endswith("/manifest.json"):
            places.append((datetime.fromisoformat(date), f"{commit}:{line}"))
    data = git("cat-file", "--batch", data="".join(f"{place}\n" for _, place in places).encode())
    digests: dict[str, dict[str, datetime]] = defaultdict(dict)
    for moment, _ in places:
        head, _, rest = data.partition(b"\n")
        size = int(head.split()[2])
        header, data = json.loads(rest[:size]), rest[size + 1 :]
        name = f"{header['name']}@{header['version']}"
        if moment < EDITED_IN_PLACE_UNTIL:
            digests[name].clear()
        digests[name].setdefault(header["digest"], moment)
    for name, folder in FOLDERS.items():
        digests[name].setdefault(read_manifest(folder).digest, datetime.now(UTC))
    assert {name: found for name, found in digests.items() if len(found) > 1} == {}
    assert FOLDERS.keys() <= digests.keys()
