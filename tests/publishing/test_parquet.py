"""Parquet files: the same bytes twice, and a digest of what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from curation.publishing.tables import part_schema, published_table, write_parquet
from tests.publishing.published_world import tiny


def table() -> pa.Table:
    manifest, sources = tiny()
    return published_table(manifest, "closed", sources)


def test_bytes_do_not_depend_on_hash_seed_or_threads(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.publishing.test_parquet import table\n"
        "from curation.publishing.tables import write_parquet\n"
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
    assert parquet.read_table(tmp_path / "a").equals(rows)
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
