"""README.md and docs/*.md, read: their blocks of code, the commands in them, links, and words in back quotes."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "manifests/README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
INDENTED = "indented"
ELLIPSIS = "…"


@dataclass(frozen=True)
class Block:
    """A fenced or indented block, its first line by number, and what it says it holds."""

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command line as a page prints it, continuation lines joined."""

    place: str
    text: str

    def given(self) -> list[str]:
        """Return its words without a comment."""
        return shlex.split(self.text, comments=True)

    def words(self) -> list[str]:
        """Return its words without a comment, ellipses, and options whose value is an ellipsis."""
        words = self.given()
        return [
            word
            for word, after in zip(words, [*words[1:], ""], strict=True)
            if ELLIPSIS not in word and not (word.startswith("-") and after == ELLIPSIS)
        ]

    @property
    def is_shortened(self) -> bool:
        return ELLIPSIS in self.text


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page; text within a list or a quotation is no indented block."""
    blocks: list[Block] = []
    lines = text_of(page).split("\n")
    number = 0
    while number < len(lines):
        start, line = number, lines[number]
        number += 1
        if line.startswith("```"):
            end = lines.index("```", number)
            blocks.append(Block(page, start + 1, line[3:].strip(), "\n".join(lines[number:end]) + "\n"))
            number = end + 1
        elif line.startswith("    ") and not lines[start - 1].strip():
            while number < len(lines) and lines[number].startswith("    "):
                number += 1
            text = "".join(f"{one[4:]}\n" for one in lines[start:number])
            blocks.append(Block(page, start + 1, INDENTED, text))
    return blocks


def lines_of(block: Block) -> list[str]:
    """Return the lines of a block that hold something, those that a backslash continues joined."""
    joined = re.sub(r"\\\n\s*", "", block.text)
    return [line for line in joined.split("\n") if line.strip()]


def commands_of(block: Block) -> list[Command]:
    """Return the command lines of a block: those of this program, with or without a prompt before them."""
    found = [line.removeprefix("$ ") for line in lines_of(block)]
    return [Command(block.place, line) for line in found if line.startswith("curation ")]


def prose_of(page: str) -> str:
    """Return a page without its blocks."""
    text = re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    return "\n".join(line for line in text.split("\n") if not line.startswith("    "))


def quoted(page: str) -> list[str]:
    """Return what stands in back quotes in the text of a page, line ends as blanks."""
    return [" ".join(one.split()) for one in re.findall(r"`([^`]+)`", prose_of(page))]


def links(page: str) -> list[tuple[str, str]]:
    """Return the targets of links and pictures that are no web pages: file, and heading or ``""``."""
    targets = re.findall(r"\]\((?![a-z]+:)([^)\s]*)\)", prose_of(page))
    return [(file, heading) for file, _, heading in (target.partition("#") for target in targets)]


def headings(page: str) -> set[str]:
    """Return the names by which headings of a page are linked to."""
    found = re.findall(r"^#+ (.*)$", prose_of(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in found}


def with_tables(page: Path, mark: str, tables: str) -> str:
    """Return a page whose text behind a mark is tables that a program makes."""
    before, found, _ = page.read_text(encoding="utf-8").partition(mark)
    if not found:
        raise SystemExit(f"{page} has no line {mark}")
    return f"{before}{mark}\n{tables}"


def kept(page: Path, text: str, words: Sequence[str]) -> int:
    """Write a generated page where ``--write`` is among the words; else return 1 where it is not what it should be."""
    if "--write" in words:
        page.write_text(text, encoding="utf-8")
        return 0
    return int(text != page.read_text(encoding="utf-8"))
