"""What to type next on the way from a build to a score: verify, audit, export, evaluate."""

from __future__ import annotations

import argparse
from pathlib import Path

from curation.cli.output import next_command
from curation.manifest.built_from import BUILT_FROM_FILE
from curation.manifest.manifest import HEADER_FILE, read_stated


def following(options: argparse.Namespace) -> list[str]:
    """Return the line that names the command after a finished one; none but for a folder that a build wrote."""
    target = str(getattr(options, "manifest", None) or getattr(options, "target", None) or "")
    folder = Path(target).parent if Path(target).name == HEADER_FILE else Path(target)
    if not target or not (folder / BUILT_FROM_FILE).is_file():
        return []
    moved = [word for text in options.source for word in ("--source", text)]
    if options.verb == "verify":
        return [next_command("audit", target, *moved)]
    header = read_stated(folder)
    tests = [part for part in header.parts if part.role == "test"]
    if options.verb == "audit" and tests:
        first = tests[0].name
        words = ["--part", first, "--format", "coco", *moved, "--out", f"{first}.json"]
        return [next_command("export", target, *words)]
    chosen = [part for part in tests if [part.name] == options.part] if options.verb == "export" else []
    if not chosen or not chosen[0].task or options.format != ["coco"]:
        return []
    (out,) = options.out
    if out.suffix != ".json":
        return []
    words = ["--task", chosen[0].task, "--truth", str(out), "--detections", "DETECTIONS.json"]
    return [next_command("evaluate", header.rule.protocol, "--manifest", target, *words)]
