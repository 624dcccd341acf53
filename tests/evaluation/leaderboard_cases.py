"""Rows of a leaderboard for tests, as the data that a file holds."""

import json
from pathlib import Path
from typing import Any

from curation.evaluation.leaderboard_rows import LeaderboardRow, read_leaderboard_rows

MANIFEST = {"name": "elephant/val2017", "version": "1.0.0", "digest": "sha256:" + "1" * 64}


def row_data(name: str, value: float | None = 0.5, **more: Any) -> dict[str, Any]:
    """Return one row, its predictions named after the method unless told otherwise."""
    data = {
        "schema_version": 2,
        "name": name,
        "score": "",
        "protocol": "elephant",
        "manifest": MANIFEST,
        "part": "closed + wilderness",
        "variant": "paper",
        "truth": "sha256:" + "2" * 64,
        "pinned": True,
        "settings": {},
        "evaluator": {"curation": "1.2.3", "algorithm": 1},
        "operating_point": {"recalls": "0.3"},
        "metrics": {
            "mAP11": {"value": 0.5, "unit": "%", "better": "higher"},
            "AWI@0.3": {"value": value, "unit": "ratio", "better": "lower"},
        },
        "predictions": "sha256:" + f"{name.encode().hex():0>64}"[-64:],
        "reported": {},
    }
    return data | more


def write_rows(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def numbered(folder: Path, *rows: dict[str, Any]) -> tuple[tuple[int, LeaderboardRow], ...]:
    return read_leaderboard_rows(write_rows(folder / "rows.jsonl", *rows)).rows
