"""manifests/README.md, which says of every manifest what it holds and how to complete it, made from the headers.

``python -m tests.docs.manifest_tables`` says whether the page is up to date; ``--write`` updates it.
"""

import sys
from itertools import groupby

from curation.manifest.locate import load_manifest, manifest_folders
from curation.manifest.manifest import Manifest
from curation.publishing.member import TERMS
from curation.sources.datasets import family
from tests.docs.pages import ROOT, kept, with_tables

PAGE = ROOT / "manifests/README.md"
BEGIN = "<!-- made by `python -m tests.docs.manifest_tables --write` of the headers beside it -->\n"
RULES = {
    "elephant": "wilderness",
    "owod": "tasks",
    "osod3": "superclass",
    "imagenet": "hierarchy",
    "findmeifyoucan": "near-far",
}
"""By protocol; of every other one the rule is ``lists``."""
OPEN_IMAGES = "https://storage.googleapis.com/openimages"
RECIPES = {
    "osod3": f"""\
The boxes of Open Images are public: [train]({OPEN_IMAGES}/v6/oidv6-train-annotations-bbox.csv),
[validation]({OPEN_IMAGES}/v5/validation-annotations-bbox.csv), [test]({OPEN_IMAGES}/v5/test-annotations-bbox.csv) and
[names]({OPEN_IMAGES}/v5/class-descriptions-boxable.csv), four files in one folder, say `OPENIMAGES`. Each of the eight
cases is then one line:

```text
curation build osod3/openimages-animal-1 --source openimages=OPENIMAGES --out animal-1
```

MTSD has no manifest here: its clusters come from its annotations, which may not be passed on. With
[its files]({TERMS["mtsd"].url}) on your disk the line is:

```text
curation build osod3 --set problem=mtsd --set case=unknown12 --source mtsd-train=MTSD --source mtsd-val=MTSD --out mtsd
```
"""
}
"""What to say below the table of a family."""


def manifests() -> list[Manifest]:
    """Return the latest version of each packaged manifest, sorted by name."""
    names = manifest_folders([ROOT / "manifests"])
    return [load_manifest(name) for name in dict.fromkeys(name.partition("@")[0] for name in names)]


def section(name: str, members: list[Manifest]) -> str:
    """Return the table of the manifests of a family, and what their data are."""
    headers = [manifest.header for manifest in members]
    papers = dict.fromkeys(
        f"*{paper.title}* ({paper.venue} {paper.year})" for paper in (h.paper for h in headers) if paper
    )
    rules = dict.fromkeys(RULES.get(header.rule.protocol, "lists") for header in headers)
    lines = [f"## {name}", "", f"{'; '.join(papers)}. Rule: {', '.join(f'`{rule}`' for rule in rules)}.", ""]
    lines += ["| manifest | parts, with images | ids inside | complete it |", "|---|---|---|---|"]
    for manifest in members:
        header = manifest.header
        parts = ", ".join(f"{one.name} {'?' if one.images is None else f'{one.images:,}'}" for one in header.parts)
        inside = "all" if len(manifest.lists) == len(header.parts) else ", ".join(manifest.lists) or "none"
        command = "" if inside == "all" else f"`{manifest.completion()}`" if manifest.completion() else "no reader"
        lines.append(f"| `{header.name}` {header.version} | {parts} | {inside} | {command} |")
    data = {family(entry.dataset) for header in headers for entry in header.sources}
    pages = [f"[{dataset}]({TERMS[dataset].url})" for dataset in sorted(data & TERMS.keys())]
    lists = [entry.note for header in headers for entry in header.sources if entry.name == "published-lists"]
    lines += ["", f"Data: {', '.join(pages)}."] if pages else []
    lines += ["", f"Lists of the authors: {'; '.join(dict.fromkeys(lists))}."] if lists else []
    lines += ["", RECIPES[name].rstrip()] if name in RECIPES else []
    return "\n".join([*lines, ""])


def digests() -> str:
    """Return the digest of each version of each manifest, by name."""
    folders = manifest_folders([ROOT / "manifests"])
    lines = [f"{name} {load_manifest(name).digest}" for name in sorted(folders)]
    title = "## Digests\n\nA published manifest is never edited: a fix is a new version, and both stay.\n\n"
    return title + "\n".join(["```text", *lines, "```"])


def page() -> str:
    """Return the page with the tables as they should be."""
    families = groupby(manifests(), key=lambda manifest: manifest.header.name.partition("/")[0])
    sections = [section(name, list(members)) for name, members in families]
    return with_tables(PAGE, BEGIN, "\n".join([*sections, digests()]) + "\n")


if __name__ == "__main__":
    sys.exit(kept(PAGE, page(), sys.argv[1:]))
