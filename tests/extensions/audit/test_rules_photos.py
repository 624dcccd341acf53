"""DS3 on real photo files: equal pixels under two ids, near copies, photos that are missing or broken."""

from pathlib import Path

import numpy as np
import pytest

from curation.extensions.audit.report import Report
from curation.extensions.audit.run import run_audit
from tests.extensions.audit.benchmark_world import LISTS, World

pytest.importorskip("imagehash", reason="photos are compared with ImageHash")
image_module = pytest.importorskip("PIL.Image", reason="photos are read with Pillow")

NATIVES = sorted({native for ids in LISTS.values() for native in ids})


def photo(number: int, size: int = 96) -> np.ndarray:
    """A smooth random picture, unlike every other."""
    rng = np.random.default_rng(number)
    coarse = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
    return np.asarray(image_module.fromarray(coarse).resize((size, size), image_module.Resampling.BICUBIC))


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The sound benchmark with a photo of every image, all different."""
    for number, native in enumerate(NATIVES):
        image_module.fromarray(photo(number)).save(tmp_path / f"{native}.png")
    return World(photos={"train": tmp_path, "test": tmp_path})


def ds3(world: World) -> Report:
    return run_audit(world.target())


def examples(audit: Report) -> tuple[str, ...]:
    [outcome] = [one.outcome for one in audit.results if one.rule.name == "DS3"]
    return tuple(text for one in outcome.findings if one.verdict == outcome.verdict for text in one.examples)


def test_different_photos_pass(world: World) -> None:
    assert ds3(world).verdict("DS3") == "pass"


def test_the_same_pixels_in_train_and_test_fail_that_rule_alone(world: World, tmp_path: Path) -> None:
    sound = {one.rule.name: one.outcome.verdict for one in ds3(world).results}
    # Another file format, the same pixels.
    pixels = image_module.open(tmp_path / "a1.png")
    (tmp_path / "e1.png").unlink()
    pixels.save(tmp_path / "e1.png", compress_level=0)
    audit = ds3(world)
    assert {one.rule.name: one.outcome.verdict for one in audit.results} == sound | {"DS3": "fail"}
    assert examples(audit) == ("toy:a1 and toy:e1",)


def test_a_smaller_copy_in_test_is_a_warning(world: World, tmp_path: Path) -> None:
    small = image_module.open(tmp_path / "v1.png").resize((80, 80), image_module.Resampling.LANCZOS)
    small.save(tmp_path / "e2.png")
    audit = ds3(world)
    assert audit.verdict("DS3") == "warn"
    assert examples(audit)[0].startswith("toy:e2 and toy:v1")


def test_the_same_photo_twice_in_one_role_is_no_leak(world: World, tmp_path: Path) -> None:
    (tmp_path / "e2.png").write_bytes((tmp_path / "e1.png").read_bytes())
    assert ds3(world).verdict("DS3") == "pass"


def test_missing_and_broken_photos_leave_the_rule_undecidable(world: World, tmp_path: Path) -> None:
    (tmp_path / "c1.png").unlink()
    assert ds3(world).verdict("DS3") == "undecidable"
    (tmp_path / "c1.png").write_bytes(b"no photo")
    assert ds3(world).verdict("DS3") == "undecidable"


def test_photos_without_annotations_are_found_by_id(world: World) -> None:
    assert run_audit(world.target("train", "test")).verdict("DS3") == "pass"
