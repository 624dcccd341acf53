"""Parquet files: the same bytes twice, and a digest of what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from curation.core.errors import PublicationMismatchError
from curation.publishing.parquet import read_parquet, schema_of, write_parquet
from curation.publishing.tables import part_schema, published_table
from tests.publishing.published_world import tiny


def table() -> pa.Table:
    manifest, sources = tiny()
    return published_table(manifest, "closed", sources)


def test_bytes_do_not_depend_on_hash_seed_or_threads(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.publishing.test_parquet import table\n"
        "from curation.publishing.parquet import write_parquet\n"
        "one = table(); write_parquet(Path(sys.argv[1]), [one], one.schema)"
    )
    root = Path(__file__).parents[2]
    for seed, threads in (("0", "1"), ("77", "4")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads, "PYTHONPATH": str(root)}
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / seed)], env=environment, check=True, timeout=120, cwd=root
        )
    assert (tmp_path / "0").read_bytes() == (tmp_path / "77").read_bytes()


def test_the_digest_is_of_what_was_written_however_it_is_cut(tmp_path: Path) -> None:
    rows = table()
    digest = write_parquet(tmp_path / "a", [rows.slice(0, 1), rows.slice(1)], part_schema())
    assert pa.concat_tables(read_parquet(tmp_path / "a")).equals(rows)
    assert write_parquet(tmp_path / "b", [rows], part_schema()) == digest
    others = [
        rows.set_column(2, "width", pa.array([50, 61], pa.int32())),
        rows.take([1, 0]),
        rows.rename_columns(["id", *rows.column_names[1:]]),
    ]
    kinds = [[None], [[]], [[None]], [[{"a": None}]], [[{"a": ""}]], []]
    others += [pa.table({"x": pa.array(values, pa.list_(pa.struct([("a", pa.string())])))}) for values in kinds]
    digests = {write_parquet(tmp_path / "c", [other], other.schema) for other in others} | {digest}
    assert len(digests) == len(others) + 1


def test_no_rows_are_a_table_too(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a", [table().slice(0, 0)], part_schema())
    assert sum(map(len, read_parquet(tmp_path / "a"))) == 0


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\xff" * 400 + b"PAR1", b"{}"])
def test_what_is_no_parquet_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    for read in (lambda: list(read_parquet(tmp_path / "x")), lambda: schema_of(tmp_path / "x")):
        with pytest.raises(PublicationMismatchError, match="cannot be read as Parquet"):
            read()


def test_a_schema_that_lies_is_refused_and_does_not_end_the_process(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"image_id": ["coco:1", "coco:2"]}), path)
    data = path.read_bytes()
    assert data.count(b"%\x02\x18\x08image_id") == 1
    path.write_bytes(data.replace(b"%\x02\x18\x08image_id", b"%\x12\x18\x08image_id"))
    code = "import sys; from pathlib import Path; from curation.publishing.parquet import read_parquet\n"
    code += "from curation.core.errors import PublicationMismatchError\n"
    code += "try: list(read_parquet(Path(sys.argv[1])))\nexcept PublicationMismatchError: sys.exit(3)"
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == 3


def test_texts_that_are_no_texts_are_refused(tmp_path: Path) -> None:
    from pyarrow import parquet

    bad = pa.array([b"\xff\xfe"]).view(pa.string())
    parquet.write_table(pa.table({"image_id": bad}), tmp_path / "x", store_schema=False)
    with pytest.raises(PublicationMismatchError, match="cannot be read as Parquet"):
        list(read_parquet(tmp_path / "x"))


@pytest.mark.parametrize("nested", [False, True])
def test_a_text_that_is_named_a_million_times_fills_no_memory(tmp_path: Path, nested: bool) -> None:
    from pyarrow import parquet

    times = 50_000
    texts: pa.Array = pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), ["x" * 1_000_000])
    if nested:
        boxes = pa.StructArray.from_arrays([texts], ["category"])
        texts = pa.ListArray.from_arrays(pa.array([0, times], pa.int32()), boxes)
    path = tmp_path / "bomb.parquet"
    parquet.write_table(pa.table({"column": texts}), path, store_schema=False)
    assert path.stat().st_size < 100_000
    with pytest.raises(PublicationMismatchError, match="unpack") as refused:
        list(read_parquet(path))
    assert f"{times * 1_000_000:,} in column" in (refused.value.found or "")


def test_a_row_group_of_too_many_values_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(tmp_path / "a", [table()], part_schema())
    assert sum(map(len, read_parquet(tmp_path / "a"))) == len(table())
    monkeypatch.setattr("curation.publishing.parquet.MAX_VALUES", len(table()))
    with pytest.raises(PublicationMismatchError, match="unpack"):
        list(read_parquet(tmp_path / "a"))
