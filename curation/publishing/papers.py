"""Papers as others cite them: persons and links from a BibTeX entry, and a reference of the Citation File Format."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.manifest.header import Paper
from curation.text_table import printable

_KNOWN: Mapping[str, Mapping[str, str]] = tomllib.loads(
    (Path(__file__).parent / "papers.toml").read_text(encoding="utf-8")
)
_ENTRY = re.compile(r"@\s*([A-Za-z]{1,40})\s*\{\s*([^,\s{}]{1,200})\s*,")
_ARXIV = re.compile(r"\d{4}\.\d{4,5}(?:v\d{1,2})?")
_ARXIV_NAMED = re.compile(r"arxiv[\s:.]{1,3}(\d{4}\.\d{4,5}(?:v\d{1,2})?)", re.IGNORECASE)
_DOI = re.compile(r"10\.\d{4,9}/[-._;:/A-Za-z0-9]{1,200}")
_ACCENTS = dict(zip("\"'`^~=.uvHcrk", "\u0308\u0301\u0300\u0302\u0303\u0304\u0307\u0306\u030c\u030b\u0327\u030a\u0328",
                    strict=True))  # fmt: skip
_ACCENTED = re.compile(r"\\([\"'`^~=.]|[uvHcrk](?=[\s{])) ?\{? ?\\?([A-Za-z])\}?")
_LETTERS = {"ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "aa": "å", "AA": "Å"}
_LETTER = re.compile(r"\\(" + "|".join(sorted(_LETTERS, key=len, reverse=True)) + r")(?![A-Za-z])(?:\{\}|\s)?")
_LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A BibTeX entry: its kind and key in lower case as far as it has them, and its fields as plain texts."""

    kind: str
    key: str
    fields: Mapping[str, str]


def entry_of(bibtex: str) -> Entry:
    r"""Return what a BibTeX entry says; of what is none, nothing.

    Examples
    --------
    >>> entry_of('@inproceedings{a, author={G{\\"u}nther, Manuel}, year=2020}').fields
    {'author': 'Günther, Manuel', 'year': '2020'}
    """
    # One blank for many: no expression below then has two ways to read them.
    text = " ".join(bibtex[:_LONGEST].split())
    found = _ENTRY.search(text)
    if found is None:
        return Entry("", "", {})
    return Entry(found[1].lower(), found[2], dict(_fields(text[found.end() :])))


def _fields(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    while (found := re.compile(r"\s*,?\s*([A-Za-z][\w-]{0,40})\s*=\s*").match(text, place)) is not None:
        value, place = _value(text, found.end())
        yield found[1].lower(), " ".join(_without_tex(value).split())


def _value(text: str, start: int) -> tuple[str, int]:
    """Return a value, in braces, quotes or bare, and the place behind it."""
    opening = text[start : start + 1]
    if opening not in ('"', "{"):
        end = min((place for sign in ",}" if (place := text.find(sign, start)) >= 0), default=len(text))
        return text[start:end].strip(), end
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if (place > start and depth == 0 and text[place] == '"') or (opening == "{" and depth == 0):
            return text[start + 1 : place], place + 1
    return text[start + 1 :], len(text)


def _without_tex(text: str) -> str:
    accented = _ACCENTED.sub(lambda one: unicodedata.normalize("NFC", one[2] + _ACCENTS[one[1]]), text)
    letters = _LETTER.sub(lambda one: _LETTERS[one[1]], accented)
    return re.sub(r"\\([&%$#_{}])", r"\1", re.sub(r"(?<!\\)[{}]", "", letters)).replace("~", " ")


def links(paper: Paper) -> list[tuple[str, str]]:
    """Return where a paper is to be read, as labels and addresses: arXiv, DOI, or the address that its entry names.

    Examples
    --------
    >>> links(Paper(title="t", authors="a", year=2022, venue="arXiv 2201.00471", bibtex=""))
    [('arXiv:2201.00471', 'https://arxiv.org/abs/2201.00471')]
    """
    entry = entry_of(paper.bibtex)
    known = _KNOWN.get(entry.key, {})
    named = _ARXIV_NAMED.search(f"{paper.venue} {paper.bibtex[:_LONGEST]}")
    eprint = entry.fields.get("eprint", "")
    arxiv = named[1] if named else eprint if _ARXIV.fullmatch(eprint) else known.get("arxiv", "")
    doi = _DOI.search(entry.fields.get("doi", "")) or _DOI.search(known.get("doi", ""))
    found = [(f"arXiv:{arxiv}", f"https://arxiv.org/abs/{arxiv}")] if arxiv else []
    found += [(f"doi:{doi[0]}", f"https://doi.org/{doi[0]}")] if doi else []
    url = entry.fields.get("url", "")
    if not found and re.fullmatch(r"https?://[\w.-]+(?:/[\w./~%+-]*)?", url, re.ASCII):
        found.append(("paper", url))
    return found


def persons(paper: Paper) -> list[dict[str, str]]:
    """Return the authors as persons of the Citation File Format; who has one name alone stands as it is.

    The BibTeX entry tells family names from given ones; without one the last word is taken for the family name.

    Examples
    --------
    >>> persons(Paper(title="t", authors="K J Joseph, Jan van der Berg", year=2021, venue="v", bibtex=""))
    [{'family-names': 'Joseph', 'given-names': 'K J'}, {'family-names': 'Berg', 'given-names': 'Jan', 'name-particle': 'van der'}]
    """  # noqa: E501  (a doctest cannot be wrapped)
    stated = entry_of(paper.bibtex).fields.get("author", "")
    names = re.split(r" and ", stated) if stated else re.split(r", ?| and ", " ".join(paper.authors[:_LONGEST].split()))
    shown = (" ".join(printable(name, " ").split()) for name in names)
    found = [_person(name) for name in shown if name not in ("", "others")]
    return found or [{"name": "unknown"}]


def _person(name: str) -> dict[str, str]:
    family, comma, given = (part.strip() for part in name.partition(","))
    if not comma:
        *rest, family = name.split()
        given = " ".join(rest)
    if not given or not family:
        return {"name": name}
    # "van der" stands before the family name, or at the end of what is given.
    words = family.split() if comma else [*given.split(), family]
    first = next((place for place, word in enumerate(words) if not word.islower()), 0) if comma else len(words) - 1
    if not comma:
        while first > 1 and words[first - 1].islower():
            first -= 1
        given, particle = " ".join(words[:first]), " ".join(words[first:-1])
    else:
        particle, family = " ".join(words[:first]), " ".join(words[first:])
    return {"family-names": family, "given-names": given, **({"name-particle": particle} if particle else {})}


def reference(paper: Paper) -> dict[str, Any]:
    """Return a paper as a reference of the Citation File Format 1.2.0."""
    entry = entry_of(paper.bibtex)
    in_conference = entry.kind in ("inproceedings", "conference", "proceedings")
    data: dict[str, Any] = {
        "type": "conference-paper" if in_conference else "article",
        "title": printable(paper.title, " ").strip() or "untitled",
        "authors": persons(paper),
        "year": paper.year,
    }
    venue = printable(paper.venue, " ").strip() or "unknown"
    if in_conference:
        data["collection-title"] = printable(entry.fields.get("booktitle", "")).strip() or venue
        data["conference"] = {"name": venue}
    else:
        data["journal"] = printable(entry.fields.get("journal", "")).strip() or venue
    for label, url in links(paper):
        kind, _, value = label.partition(":")
        if kind == "doi":
            data["doi"] = value
        else:
            data["url"] = url
    return data
