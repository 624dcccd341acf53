"""The Croissant 1.1 description of a repository, with Croissant RAI 1.0 and PROV-O.

Statements on responsible use are derived from the manifest where possible; others are requested from the publisher.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from curation.core.errors import PublishError
from curation.core.files import read_bytes
from curation.manifest.header import Header
from curation.publishing.formats.plan import indented_json
from curation.publishing.member import HUB, Configs, Member, Request, Statement, keywords, title_of
from curation.publishing.tables import COLUMNS
from curation.sources.datasets import family

if TYPE_CHECKING:
    import pyarrow as pa

CROISSANT_FILE = "croissant.json"

_DECLARED = tomllib.loads((Path(__file__).parent / "croissant.toml").read_text(encoding="utf-8"))
REQUIRED: Mapping[str, str] = _DECLARED["required"]
"""The ``rai:`` properties that data tracks of conferences require, and their meanings."""
PROPERTIES: Mapping[str, str] = {**REQUIRED, **_DECLARED["optional"]}
_WIKIDATA = "https://www.wikidata.org/wiki/"
_COLLECTION, _REVIEW = f"{_WIKIDATA}Q4929239", f"{_WIKIDATA}Q3306762"
_MOST_TEXTS, _LONGEST = 64, 4000


def croissant_bytes(
    request: Request, configs: Configs, schemas: Mapping[str, pa.Schema], digests: Mapping[str, str], date: str = ""
) -> bytes:
    """Return the description of a publication as JSON-LD.

    Parameters
    ----------
    configs : mapping of str to mapping of str to str
        By config and split, the path of the table.
    schemas : mapping of str to pyarrow.Schema
        Columns with values, by path of the table.
    digests : mapping of str to str
        ``sha256:<hex>`` of each file, by path.
    date : str
        Date of publication, ISO 8601; ``""`` for none.
    """
    address, members = HUB + request.repository, request.members
    headers = [member.manifest.header for member in members]
    owner, _, name = request.repository.partition("/")
    manifest_names = "; ".join(
        f"{header.name} {header.version} ({' '.join(header.title.split())})" for header in headers
    )
    urls = {terms.url for member in members for terms in member.terms().values() if terms.url}
    organization = {"@type": "sc:Organization", "name": owner}
    citations = list(dict.fromkeys(header.paper.bibtex for header in headers if header.paper))
    data = {
        "@context": _DECLARED["context"],
        "@type": "sc:Dataset",
        "name": name,
        "description": f"{_DECLARED['description']}: {manifest_names}.",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "alternateName": title_of(members),
        **({"citeAs": "\n".join(citations)} if citations else {}),
        "creator": organization,
        **({"datePublished": date} if date else {}),
        "inLanguage": "en",
        "isLiveDataset": False,
        "keywords": keywords(members),
        "license": [address, *sorted(urls)],
        "prov:wasDerivedFrom": _entities(members),
        "prov:wasGeneratedBy": [activity for member in members for activity in _activities(member, date)],
        "publisher": organization,
        **{f"rai:{key}": request.statements[key] for key in PROPERTIES if key in request.statements},
        "url": address,
        "version": request.tag,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": path,
                "name": path,
                # Checkers get only this file, so addresses must be absolute.
                "contentUrl": f"{address}/resolve/{request.tag}/{quote(path)}",
                "encodingFormat": _DECLARED["media_types"].get(Path(path).suffix, "application/octet-stream"),
                "sha256": digest.removeprefix("sha256:"),
            }
            for path, digest in sorted(digests.items())
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": f"{config}/{split}",
                "name": f"{config}/{split}",
                "field": [_field(f"{config}/{split}", path, field) for field in schemas[path]],
            }
            for config, splits in configs.items()
            for split, path in splits.items()
        ],
    }
    return indented_json(data)


def _field(parent: str, path: str, field: pa.Field, column: str = "") -> dict[str, Any]:
    """Return the field of a column; with `column`, the field of a member of its records."""
    from pyarrow import types

    name = f"{parent}/{field.name}"
    array = types.is_list(field.type)
    kind = field.type.value_type if array else field.type
    entry: dict[str, Any] = {"@type": "cr:Field", "@id": name, "name": name}
    if not column and field.name in COLUMNS:
        entry["description"] = COLUMNS[field.name]
    if array and types.is_struct(kind):
        return entry | {"repeated": True, "subField": [_field(name, path, member, field.name) for member in kind]}
    if array:
        entry |= {"isArray": True, "arrayShape": "4" if field.name == "bbox" else "-1"}
    source = {"fileObject": {"@id": path}, "extract": {"column": column or field.name}}
    if column:
        source["transform"] = {"jsonPath": field.name}
    return entry | {"dataType": _DECLARED["data_types"][str(kind)], "source": source}


def _entities(members: Sequence[Member]) -> list[dict[str, Any]]:
    """Return the origins of the data: a flat entity with digests for each owner, as editors of RAI read them."""
    by_owner: dict[str, dict[str, Any]] = {}
    for member in members:
        for entry in member.manifest.header.sources:
            terms, label = member.terms()[entry.name], f"{entry.dataset} {entry.part}".strip()
            entity = by_owner.setdefault(
                terms.url or label,
                {
                    "@type": "prov:Entity",
                    **({"@id": terms.url} if terms.url else {}),
                    "prov:label": [],
                    "sc:license": f"annotations: {terms.annotations}; photos: {terms.media}",
                    **({"prov:wasAttributedTo": _agent("Agent", terms.creator)} if terms.creator else {}),
                    "identifier": [],
                },
            )
            entity["prov:label"].append(label)
            entity["identifier"] += [file.sha256 for file in entry.files]
    for entity in by_owner.values():
        entity["prov:label"] = ", ".join(dict.fromkeys(entity["prov:label"]))
        entity["identifier"] = list(dict.fromkeys(entity["identifier"]))
    return list(by_owner.values())


def _agent(kind: str, name: str) -> dict[str, str]:
    return {"@type": f"prov:{kind}", "prov:label": name}


def _activities(member: Member, date: str) -> Iterator[dict[str, Any]]:
    """Yield the activities that made a manifest: its rule, and its review if it was reviewed."""
    header = member.manifest.header
    moment = {"prov:atTime": date} if date else {}
    author = f"The rule of {header.paper.authors}: {header.paper.title}. " if header.paper else ""
    parameters = "; ".join(f"{name}: {value}" for name, value in header.rule.parameters.items())
    yield {
        "@type": "prov:Activity",
        "@id": f"#{member.config}/rule",
        "prov:type": {"@id": _COLLECTION},
        "prov:label": f"{header.rule.protocol}, algorithm version {header.rule.algorithm_version}",
        "sc:description": (author + parameters)[:_LONGEST],
        **moment,
        "prov:wasAttributedTo": _agent("SoftwareAgent", "curation"),
        "prov:generated": {"@id": f"{member.folder}/manifest.json"},
        "identifier": member.manifest.digest,
    }
    if header.decisions is not None:
        reviewers = sorted({item.reviewer for item in member.evidence or () if item.reviewer})
        yield {
            "@type": "prov:Activity",
            "@id": f"#{member.config}/review",
            "prov:type": {"@id": _REVIEW},
            "prov:label": "Review by eye",
            "sc:description": "Recorded decisions of reviewers, replayed on the manifest.",
            **moment,
            "prov:wasAttributedTo": [_agent("Person", name) for name in reviewers]
            or _agent("Agent", "reviewers who are not named"),
            "identifier": [header.decisions],
        }


def missing_statements(statements: Mapping[str, Statement]) -> list[str]:
    """Return a sentence with the missing properties that data tracks require; an empty list if none is missing."""
    missing = ", ".join(name for name in REQUIRED if name not in statements)
    return [f"not stated, but required by data tracks: {missing} (--rai FILE)"] if missing else []


def derived(members: Sequence[Member]) -> dict[str, Statement]:
    """Return the properties of responsible use that follow from the manifests."""
    headers = [member.manifest.header for member in members]
    # For data with a licence stated by the publisher, nothing is known about persons in the photos.
    persons = {
        (family(entry.dataset), member.terms()[entry.name].persons)
        for member in members
        for entry in member.manifest.header.sources
    }
    statements: dict[str, Statement] = {
        "dataLimitations": tuple(dict.fromkeys(text for header in headers for text in _limitations(header))),
        "dataUseCases": tuple(dict.fromkeys(map(_use_case, headers))),
        "dataCollectionType": "Secondary Data analysis",
        "dataPreprocessingProtocol": tuple(
            dict.fromkeys(f"{part.name}: {part.selection}" for header in headers for part in header.parts)
        )[:_MOST_TEXTS],
        "dataReleaseMaintenancePlan": _DECLARED["maintenance"],
    }
    if all(text for _, text in persons):
        statements["hasSyntheticData"] = False
        statements["personalSensitiveInformation"] = tuple(f"{name}: {text}" for name, text in sorted(persons))
    return {name: value for name, value in statements.items() if value != ()}


def _limitations(header: Header) -> Iterator[str]:
    where = f"{header.name} {header.version}"
    for figure in header.figures:
        if figure.paper != figure.obtained:
            differs = f"{figure.name} is {figure.obtained} here and {figure.paper} in the paper"
            yield f"{where}: {differs}. {figure.explanation}".rstrip()
    if absent := [part.name for part in header.parts if part.sha256 is None]:
        yield f"{where}: the lists of {', '.join(absent)} are not here; the header states their rule."
    yield from (f"{where}: {note}" for note in header.notes)


def _use_case(header: Header) -> str:
    roles = ", ".join(dict.fromkeys(part.role for part in header.parts))
    kind = "classifiers" if header.taxonomy == "OSC" else "detectors"
    return (
        f"{header.name} {header.version}: evaluation of {kind} under {header.taxonomy} (parts: {roles}). Parts for "
        "testing are not for training or for the choice of thresholds."
    )


def read_statements(path: Path) -> dict[str, Statement]:
    """Return the statements of a publisher in a TOML file with keys of `PROPERTIES`.

    Raises
    ------
    PublishError
        The file is not TOML, or has another key or a value of another type.
    """
    try:
        content = tomllib.loads(read_bytes(path, kind="file of statements", most=1 << 20, error=PublishError).decode())
    except (ValueError, RecursionError) as error:
        raise PublishError("The statements are not valid TOML", where=str(path), found=str(error)[:200]) from None
    return {name: _checked(name, value, path) for name, value in content.items() if value not in ("", [])}


def _checked(name: str, value: Any, path: Path) -> Statement:
    where = f"{path.name}: {ascii(name)[1:-1][:80]}"
    if name not in PROPERTIES:
        raise PublishError("Unknown statement", where=where, expected=", ".join(PROPERTIES))
    texts = value if isinstance(value, list) else [value]
    if name == "hasSyntheticData":
        sound, expected = isinstance(value, bool), "true or false"
    else:
        sound = len(texts) <= _MOST_TEXTS and all(isinstance(text, str) and 0 < len(text) <= _LONGEST for text in texts)
        expected = f"a text, or at most {_MOST_TEXTS} texts, of at most {_LONGEST} characters"
    if not sound:
        raise PublishError("Wrong type for a statement", where=where, expected=expected, found=f"{value!r:.80}")
    return tuple(value) if isinstance(value, list) else value
