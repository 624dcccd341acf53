"""A manifest on a real FiftyOne dataset: tags and saved views a part, nothing of the user's touched, and back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curation.errors import ManifestError, UsageError
from curation.manifest.fiftyone_tags import read_tags
from curation.manifest.manifest import Manifest
from tests.task_world import TaskWorld, write_task_world

pytestmark = pytest.mark.mongo


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> TaskWorld:
    return write_task_world(tmp_path_factory.mktemp("raw"))


@pytest.fixture
def dataset(fiftyone: Any, world: TaskWorld, tmp_path: Path) -> Iterator[Any]:
    """A sample an image of both sources, named by its number, with a tag and a view of the user's own."""
    made = fiftyone.Dataset(f"tags-{tmp_path.name}")
    made.add_samples(
        fiftyone.Sample(filepath=f"/photos/{number:012d}.jpg", coco_id=number, tags=["mine"])
        for source in world.sources.values()
        for number in source.images.numbers.tolist()
    )
    made.save_view("my view", made.limit(3))
    yield made
    fiftyone.delete_dataset(made.name)


def state(dataset: Any) -> Any:
    views = {name: dataset._get_saved_view_doc(name).description for name in dataset.list_saved_views()}
    return dataset.values(["coco_id", "tags"]), views, dict(dataset.info)


def test_each_part_is_a_tag_and_a_view_and_the_way_back(dataset: Any, world: TaskWorld) -> None:
    manifest = world.manifest
    counts = manifest.to_fiftyone(dataset)
    assert counts == {part: len(manifest.ids(part)) for part in manifest.lists}
    for part in manifest.lists:
        view = dataset.load_saved_view(part)
        assert {f"coco:{number:012d}" for number in view.values("coco_id")} == set(manifest.ids(part))
        assert dataset._get_saved_view_doc(part).description == manifest.digest
    said = dataset.info["curation"]
    header = manifest.header
    assert (said["name"], said["version"], said["digest"]) == (header.name, header.version, manifest.digest)
    found = read_tags(dataset)
    assert {part: tuple(sorted(ids)) for part, ids in manifest.lists.items()} == found.lists
    assert found.differences(manifest) == {}
    assert all("mine" in tags for tags in dataset.values("tags"))
    assert "my view" in dataset.list_saved_views()


def test_twice_is_once(dataset: Any, world: TaskWorld) -> None:
    world.manifest.to_fiftyone(dataset)
    before = state(dataset)
    world.manifest.to_fiftyone(dataset)
    assert state(dataset) == before


def test_a_write_that_was_cut_off_is_finished_by_the_next(
    dataset: Any, world: TaskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from curation.manifest import fiftyone_tags

    honest = fiftyone_tags._tag

    def cut_off(dataset: Any, tag: str, samples: Any) -> None:
        honest(dataset, tag, list(samples)[:2])
        raise KeyboardInterrupt

    monkeypatch.setattr(fiftyone_tags, "_tag", cut_off)
    with pytest.raises(KeyboardInterrupt):
        world.manifest.to_fiftyone(dataset)
    assert read_tags(dataset).differences(world.manifest)
    monkeypatch.setattr(fiftyone_tags, "_tag", honest)
    world.manifest.to_fiftyone(dataset)
    assert read_tags(dataset).differences(world.manifest) == {}


def test_changed_tags_are_told_by_id(dataset: Any, world: TaskWorld) -> None:
    manifest = world.manifest
    manifest.to_fiftyone(dataset, ["t1-test"])
    first, *_ = manifest.ids("t1-test")
    outside = next(one for one in world.sources["train"].image_ids.tolist() if one not in manifest.ids("t1-test"))
    by_number = {
        f"coco:{number:012d}": sample for number, sample in zip(*dataset.values(["coco_id", "id"]), strict=True)
    }
    dataset.select([by_number[first]]).untag_samples("t1-test")
    dataset.select([by_number[outside]]).tag_samples("t1-test")
    assert read_tags(dataset).differences(manifest) == {"t1-test": ((first,), (outside,))}
    other = Manifest(manifest.header, manifest.lists)
    object.__setattr__(other, "digest", "sha256:0")
    with pytest.raises(ManifestError, match="of another manifest"):
        read_tags(dataset).differences(other)


def test_images_that_the_dataset_lacks_are_named(dataset: Any, world: TaskWorld) -> None:
    manifest = world.manifest
    lost = manifest.ids("t1-test")[0]
    dataset.delete_samples(dataset.match({"coco_id": int(lost.partition(":")[2])}))
    with pytest.raises(UsageError, match="lacks images of the manifest") as caught:
        manifest.to_fiftyone(dataset, ["t1-test"])
    assert caught.value.found == f"without 1 images: {lost}"
    assert "curation" not in dataset.info
    assert dataset.distinct("tags") == ["mine"]
    counts = manifest.to_fiftyone(dataset, ["t1-test"], missing="skip")
    assert counts == {"t1-test": len(manifest.ids("t1-test")) - 1}
    assert read_tags(dataset).differences(manifest) == {"t1-test": ((lost,), ())}


def test_what_is_the_users_own_stays(dataset: Any, world: TaskWorld) -> None:
    manifest = world.manifest
    dataset.limit(1).tag_samples("t1-test")
    with pytest.raises(UsageError, match="a tag of this name that is not ours"):
        manifest.to_fiftyone(dataset)
    assert "curation" not in dataset.info
    dataset.save_view("OWOD T1 test", dataset.limit(2))
    with pytest.raises(UsageError, match="a saved view of this name"):
        # A name is taken where its short form, which stands in addresses, is.
        manifest.to_fiftyone(dataset, ["t1-test"], prefix="owod ")
    assert len(dataset.load_saved_view("OWOD T1 test")) == 2
    assert manifest.to_fiftyone(dataset, ["t1-test"], prefix="ours ")
    assert read_tags(dataset).differences(manifest) == {}
    dataset.info["curation"] = "my own"
    with pytest.raises(UsageError, match="not written by curation"):
        manifest.to_fiftyone(dataset, prefix="ours ")


def test_another_manifest_takes_its_place_only_where_asked(dataset: Any, world: TaskWorld) -> None:
    manifest = world.manifest
    manifest.to_fiftyone(dataset)
    header = type(manifest.header)(
        **{name: getattr(manifest.header, name) for name in type(manifest.header).__struct_fields__}
        | {"version": "9.0.0"}
    )
    later = Manifest(header, {"t1-test": manifest.ids("t1-test")})
    with pytest.raises(UsageError, match="the tags of another manifest"):
        later.to_fiftyone(dataset)
    later.to_fiftyone(dataset, replace=True)
    assert dataset.distinct("tags") == ["mine", "t1-test"]
    assert dataset.list_saved_views() == ["my view", "t1-test"]
    assert read_tags(dataset).version == "9.0.0"


def test_samples_go_by_number_stem_or_whole_id(dataset: Any, world: TaskWorld, fiftyone: Any) -> None:
    manifest = world.manifest
    counts = manifest.to_fiftyone(dataset, id_field="filepath")
    assert read_tags(dataset).differences(manifest) == {}
    named = dataset.clone()
    named.add_sample_field("image_id", fiftyone.StringField)
    named.set_values("image_id", [f"coco:{number:012d}" for number in named.values("coco_id")])
    assert manifest.to_fiftyone(named, id_field="image_id") == counts
    named.add_sample(fiftyone.Sample(filepath="/photos/copy.jpg", coco_id=1, image_id=manifest.ids("t1-test")[0]))
    with pytest.raises(UsageError, match="Two samples are one image"):
        manifest.to_fiftyone(named, id_field="image_id")
    fiftyone.delete_dataset(named.name)


def test_a_view_is_not_written_to_and_a_bare_dataset_has_no_way_back(dataset: Any, world: TaskWorld) -> None:
    with pytest.raises(UsageError, match="written to a dataset of FiftyOne") as caught:
        world.manifest.to_fiftyone(dataset.limit(3))
    assert dataset.name in str(caught.value.hint) or "load_dataset" in str(caught.value.hint)
    with pytest.raises(UsageError, match="written to a dataset"):
        world.manifest.to_fiftyone({"images": []})
    with pytest.raises(UsageError, match="No manifest was put onto"):
        read_tags(dataset)
