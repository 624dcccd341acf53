"""Pages from templates: HTML for a browser and Markdown for a hub; texts from files are escaped.

Templates are in the folder ``templates`` of this package, or of the extension that uses them. HTML pages extend
``page.html``, which holds the one stylesheet, and need no other file; a page can be read without a script.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from curation.core.tables import printable
from curation.core.wording import cut

if TYPE_CHECKING:
    from jinja2 import Environment

_MARKS = re.compile(r"([\\`*_\[\]<>|~#$&])")
# What begins a list, or underlines a heading, at the beginning of a line.
_FIRST = re.compile(r"^(\d{0,9})([-+.)](?= |$)|[-=](?=[-=]*$))")


def page(template: str, package: str = "", /, **values: Any) -> str:
    """Return a page made from a template.

    Parameters
    ----------
    template : str
        Name of a template file. In ``.html`` every value is escaped; the filter ``clean`` shortens it as well, and
        ``safe`` lets ready HTML through, such as a drawing. In ``.md`` texts from files pass the filter ``plain``,
        ``code``, ``link`` or ``block``. All are functions of this module.
    package : str, optional
        The package whose folder ``templates`` holds the file, if it is not in ``curation/core/templates``.
    **values
        Names that the template uses; any other name is an error.
    """
    return _environment(package).get_template(template).render(values)


@cache
def _environment(package: str) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape
    from markupsafe import Markup

    made = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (package, "curation.core") if name]),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "clean": lambda text, limit=80: Markup(clean(text, limit)),  # noqa: S704 - `clean` escapes it
        "count": count,
        "plain": markdown_text,
        "code": code,
        "link": link,
        "block": block,
    }
    return made


def clean(text: str, limit: int = 80) -> str:
    """Return a text from a file for HTML: escaped, without control characters, not longer than `limit`."""
    return escape(cut(printable(text), limit))


def markdown_text(text: object) -> str:
    """Return a text as one line with Markdown's characters escaped; an address may still become a link."""
    return _FIRST.sub(r"\1\\\2", _MARKS.sub(r"\\\1", _one_line(text)))


def code(text: object) -> str:
    """Return a text as code within a line or a cell."""
    line = _one_line(text)
    return f"`{line.replace('`', chr(0x2CB)).replace('|', '¦')}`" if line else ""


def link(address: str) -> str:
    """Return an address of this package as a link; escapes would become part of it."""
    return f"<{address}>" if address else ""


def block(text: str, language: str = "") -> str:
    """Return a code block, and a blank line after it; no line of the text closes its fence."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{language}", *(printable(line, " ") for line in text.splitlines()), fence, "\n"])


def count(number: int | None) -> str:
    """Return a number with thousands separators, or ``-`` for None."""
    return "-" if number is None else f"{number:,}"


def _one_line(text: object) -> str:
    return " ".join(printable(str(text), " ").split())
