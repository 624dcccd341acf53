"""Kinship of class lists: drawn cases by hand, and the published lists of SSB and ImageNet-OOD."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from curation.core.errors import CurationError, UsageError
from curation.core.ids import ilsvrc2012_classes
from curation.signals.hierarchy.class_lists import class_in, read_class_sets
from curation.signals.hierarchy.questions import kin
from curation.signals.hierarchy.related_classes import class_kin, relatives
from tests.real_files import provided, real_files

JAY, BLUE_JAY, BIRD, STONE = "n01580077", "n01580870", "n01503061", "n09416076"


def test_relatives_by_every_parent(edges: Any) -> None:
    # hound has two parents; of the ways up to animal the shorter one counts.
    graph = edges("animal", "dog animal", "pet animal", "hound dog pet", "beagle hound", "cat pet", "stone")
    asked = ["beagle", "pet", "dog", "stone", "cat"]
    found = relatives(graph, asked, ["dog", "pet", "hound"])
    assert {node: (one.relation, one.known, one.edges) for node, one in found.items()} == {
        "beagle": ("below", ("hound", "dog", "pet"), 1),
        "pet": ("same", ("pet",), 0),
        "dog": ("same", ("dog",), 0),
        "cat": ("below", ("pet",), 1),
    }
    # What lies below one known class and above another is below: the stronger.
    found = relatives(graph, ["hound", "animal"], ["animal", "beagle"])
    assert (found["hound"].relation, found["hound"].known) == ("below", ("animal",))
    assert relatives(graph, ["animal"], ["beagle", "cat"])["animal"].known == ("cat", "beagle")
    # A sibling is no relative.
    assert relatives(graph, ["cat"], ["hound"]) == {}


def test_not_in_the_table_is_not_no_kin() -> None:
    found = class_kin([BLUE_JAY, BIRD, STONE, "n99999999", "crane", "brant goose xyz"], [JAY, "n88888888"])
    assert (found.of("below"), found.of("above"), found.of("same")) == ((BLUE_JAY,), (BIRD,), ())
    assert set(found.unknown.absent) == {"n99999999", "crane", "brant goose xyz"}
    assert found.unknown.absent["crane"].startswith("a word of 5 synsets")
    assert list(found.known.absent) == ["n88888888"]
    relation = {row["class"]: row["relation"] for row in found.rows}
    assert (relation[STONE], relation["n99999999"]) == ("none", "not in the table")


def test_names_by_the_maps_of_a_data_set() -> None:
    # In WordNet `mouse` is the rodent first; of COCO's classes it is the pointing device.
    found = class_kin(["mouse", "sports ball"], ["electronic device"], datasets=("coco",))
    assert found.of("below") == ("mouse",)
    assert class_kin(["dog.n.01", "Blue Jay"], ["n02084071", JAY]).of("same", "below") == ("dog.n.01", "Blue Jay")


def test_a_known_class_under_another_name_is_told_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unknown, known = ["car", "couch", "automobile", "zebra"], ["sofa", "car", "horse"]
    found = class_kin(unknown, known, datasets=("coco", "voc"))
    assert found.of("same") == ("car", "couch", "automobile")
    assert found.renamed == {"couch": "sofa", "automobile": "car"}
    assert found.one_synset == (("car", "automobile"),)
    paths = [tmp_path / "unknown_classes.txt", tmp_path / "known_classes.txt"]
    for path, names in zip(paths, (unknown, known), strict=True):
        path.write_text("\n".join(names))
    words = ["hierarchy", "related", *map(str, paths), "--datasets", "coco", "--datasets", "voc"]
    assert main(words) == 1
    capsys.readouterr()
    assert main([*words, "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)["sets"]
    assert (told["renamed"], told["one_synset"]) == (found.renamed, [["car", "automobile"]])


def lists(folder: Path) -> dict[str, Path]:
    """Write one benchmark in every form that classes come in."""
    texts = {
        "wnids.txt": f"{BLUE_JAY}\n{BIRD}\n{STONE}\n",
        "names_of_classes.txt": f"{BLUE_JAY} blue jay, jaybird\n{BIRD} bird\n{STONE} stone, rock\n",
        "roles.json": json.dumps(
            {"known_classes": [JAY], "unknown_classes": {"Hard": [BLUE_JAY, BIRD], "Easy": [STONE]}}
        ),
        "files.json": json.dumps({BLUE_JAY: ["a.jpg", "b.jpg"], BIRD: ["c.jpg"], STONE: ["d.jpg"]}),
        "ood.txt": f"x/{BLUE_JAY}/a.jpg -1\nx/{BLUE_JAY}/b.jpg -1\nx/{BIRD}/c.jpg -1\nx/{STONE}/d.jpg -1\n",
        "names.txt": f"{BLUE_JAY}_1.JPEG\n{BLUE_JAY}_2.JPEG\n{BIRD}_1.JPEG\n{STONE}_7.JPEG\n",
        "known.txt": f"{JAY}\n",
        "bare.txt": "a.jpg\nb.jpg\n",
        "map.json": '{"a": "b"}',
        "empty.json": '{"known_classes": [], "unknown_classes": []}',
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return {name: folder / name for name in texts}


@pytest.mark.parametrize("form", ["wnids.txt", "names_of_classes.txt", "files.json", "ood.txt", "names.txt"])
def test_every_form_says_the_same(form: str, tmp_path: Path) -> None:
    paths = lists(tmp_path)
    (found,) = kin(paths[form], paths["known.txt"])
    assert [(name, one.relation, one.known) for name, one in found.relatives.items()] == [
        (BLUE_JAY, "below", (JAY,)),
        (BIRD, "above", (JAY,)),
    ]
    counted = {"classes": 3, "below": 1, "above": 1, "same": 0, "known": 1, "not_in_table": 0}
    assert {key: found.counts[key] for key in counted} == counted
    told = form in ("files.json", "ood.txt", "names.txt")
    assert (found.counts["below_images"], found.counts["above_images"]) == ((2, 1) if told else (None, None))
    assert found.filed is (form in ("ood.txt", "names.txt"))


def test_roles_and_images_of_another_file(tmp_path: Path) -> None:
    paths = lists(tmp_path)
    hard, easy = kin(paths["roles.json"], images=paths["files.json"])
    assert (hard.name, easy.name) == ("unknown/Hard", "unknown/Easy")
    assert (hard.counts["below_images"], hard.counts["above_images"], easy.counts["images"]) == (2, 1, 1)
    assert kin(paths["wnids.txt"], paths["roles.json"])[0].of("below") == (BLUE_JAY,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("wnids.txt",), "No in-distribution classes"),
        (("bare.txt", "known.txt"), "the class of each image"),
        (("map.json", "known.txt"), "renames classes"),
        (("wnids.txt", "nowhere.txt"), "nowhere.txt"),
        # Nothing to hold against another is no "no kin".
        (("empty.json",), "No classes to compare"),
        (("empty.json", "known.txt"), "No classes to compare"),
    ],
)
def test_what_tells_no_class_is_refused(given: tuple[str, ...], message: str, tmp_path: Path) -> None:
    paths = lists(tmp_path)
    with pytest.raises(CurationError, match=message):
        kin(*(paths.get(name, tmp_path / name) for name in given))


def test_manifests_say_their_roles() -> None:
    (found,) = kin("imagenet/p2@1.0.0")
    assert len(found.known.names) == 30
    assert (found.counts["classes"], found.of("same", "below", "above")) == (55, ())
    names = [one.name for one in kin("owod/m-owodb@1.0.0")]
    # In the last task no class is unknown.
    assert names == ["t1", "t2", "t3"]
    with pytest.raises(UsageError, match="No such part"):
        kin("imagenet/p2@1.0.0", part="nosuch")
    assert read_class_sets("ilsvrc2012")[0].classes == ilsvrc2012_classes()


def test_the_class_that_a_path_names() -> None:
    assert class_in(f"a/{JAY}/x_1.JPEG") == class_in(f"{JAY}_5.JPEG") == class_in(f"{JAY}_5") == JAY
    assert [class_in(one) for one in ("n0158_1.jpg", "val/ILSVRC2012_val_1", "n015800777/a", "")] == [""] * 4


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = lists(tmp_path)
    rows = tmp_path / "kin.csv"
    command = ["hierarchy", "related", str(paths["ood.txt"]), str(paths["known.txt"])]
    assert main([*command, "--out", str(rows)]) == 0
    out = capsys.readouterr().out
    assert "1 below a known class: by definition its images are of that class" in out
    assert "siblings, which share a parent with a known class, are not counted" in out
    assert "need not be what the images show" in out
    assert not {"leak", "cheat", "wrong"} & set(out.lower().replace(",", " ").split())
    assert rows.read_text(encoding="utf-8").splitlines()[:2] == [
        "set,class,label,relation,images,nearest,edges,known_related,why",
        f"ood,{BLUE_JAY},{BLUE_JAY} blue jay,below,2,{JAY} jay,2,1,",
    ]
    assert main([*command, "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["sets"]
    assert [one["relation"] for one in told["classes_told"]] == ["below", "above", "none"]
    # A class that is known itself: the check fails.
    assert main(["hierarchy", "related", str(paths["known.txt"]), JAY]) == 2
    assert main(["hierarchy", "related", str(paths["known.txt"]), str(paths["roles.json"])]) == 1


def sha256_of(names: tuple[str, ...]) -> str:
    return hashlib.sha256("".join(f"{name}\n" for name in sorted(names)).encode()).hexdigest()


DESCENDANTS = "1c2e02ed6adfac1f2fe3ff9cde37c93999d7922f81fb8782beef38ea748db947"
ANCESTORS = "6c3794fd56891243671183e26954c6ff7628b1fbcf52754e9f9c8bdb05439866"
EASY = "2f4e7d7029bc47a6280b34bcaffa3d847721045e5fbe6e3bfe3c6ec3189822fa"


def test_kin_of_ssbs_classes() -> None:
    """The room's class lists need no file: the numbers of its imagenet classes run everywhere."""
    from curation.extensions.benchmarks.ssb import PROBLEMS

    classes = PROBLEMS["imagenet"]["classes"]
    hard, easy = (class_kin(classes[level], ilsvrc2012_classes()) for level in ("hard", "easy"))
    assert not hard.unknown.absent
    assert not easy.unknown.absent
    assert not hard.known.absent
    assert not hard.of("same")
    assert not easy.of("same", "below")
    assert (len(hard.of("below")), len(hard.of("above")), len(easy.of("above"))) == (160, 32, 134)
    assert (sha256_of(hard.of("below")), sha256_of(hard.of("above"))) == (DESCENDANTS, ANCESTORS)
    assert sha256_of(easy.of("above")) == EASY
    nearest = Counter(hard.labels[hard.relatives[name].known[0]].partition(" ")[2] for name in hard.of("below"))
    assert (len(nearest), sum(hard.relatives[name].edges == 1 for name in hard.of("below"))) == (78, 135)
    fives = {"lycaenid", "lynx", "warplane", "rifle", "ice cream"}
    assert nearest["goose"] == 10
    assert {name for name, count in nearest.items() if count == 5} == fives
    largest = sorted(((len(easy.relatives[name].known), name) for name in easy.of("above")), reverse=True)[:5]
    assert [(easy.labels[name].partition(" ")[2], count) for count, name in largest] == [
        ("artifact", 522),
        ("animal", 398),
        ("vertebrate", 337),
        ("mammal", 218),
        ("device", 130),
    ]


@provided
def splits(shared: Path) -> Any:
    return json.loads((shared / "data/atlas/ssb/imagenet_ssb_splits.json").read_text("utf-8"))


@real_files("atlas_lists")
def check_kin_of_the_published_lists(shared: Path) -> None:
    atlas = shared / "data/atlas"
    hard, easy = kin(atlas / "ssb/imagenet_ssb_splits.json", images=atlas / "ssb/imagenet_21k_val_files.json")
    (listed,) = kin(atlas / "openood/imagenet/test_ssb_hard.txt", "ilsvrc2012")
    (own,) = kin(atlas / "imagenetood/imagenetood.txt", "ilsvrc2012")
    keys = ("classes", "same", "below", "below_images", "above", "above_images", "not_in_table")
    rows = {one.name: tuple(one.counts[key] for key in keys) for one in (hard, easy, listed, own)}
    assert rows == {
        "unknown/Hard": (980, 0, 160, 8000, 32, 1600, 0),
        "test_ssb_hard": (980, 0, 160, 8000, 32, 1600, 0),
        "unknown/Easy": (1000, 0, 0, 0, 134, 6700, 0),
        "imagenetood": (637, 0, 1, 50, 2, 100, 0),
    }
    for one in (hard, listed):
        assert (sha256_of(one.of("below")), sha256_of(one.of("above"))) == (DESCENDANTS, ANCESTORS)
    assert sha256_of(easy.of("above")) == EASY
    assert hard.counts["images"] == 49_000
    assert [own.labels[name].partition(" ")[2] for name in own.of("below", "above")] == [
        "shaving cream",
        "textile machine",
        "blower",
    ]


@real_files("atlas_lists")
def check_ssbs_pairs_name_the_kin(splits: Any) -> None:
    hard = class_kin(splits["unknown_classes"]["Hard"], splits["known_classes"])
    named = Counter(
        hard.relatives[pair["unknown_class"]].relation
        for pair in splits["known_unknown_pairs"]["Hard"]
        if (one := hard.relatives.get(pair["unknown_class"])) and pair["known_class"] in one.known
    )
    assert named == {"below": 155, "above": 28}


@real_files("atlas_lists")
def check_folders_of_imagenet_o_are_not_its_classes(shared: Path) -> None:
    (found,) = kin(shared / "data/atlas/openood/imagenet/test_imagenet_o.txt", "ilsvrc2012")
    assert (found.counts["same"], found.filed) == (200, True)
