"""Pages of the documentation site beyond docs/: README, changelog, notebooks, commands, the Python reference.

MkDocs calls these functions (``hooks`` of mkdocs.yml). Pages are made from files of the repository, and links between
these files become links between pages. A link to another file (code, a manifest) becomes the path of this file.
"""

import base64
import inspect
import json
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
# MkDocs loads this file by its path.
sys.path.insert(0, str(ROOT))
from tests.docs import commands  # noqa: E402

PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security_policy.md",
}
"""Files of the repository that are pages of the site."""
_LINK = re.compile(r"(?<!\\)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_COMMANDS = re.compile(
    r'<div class="(language-text highlight"><pre><span></span><code>(?:curation |pip |#!|job=|RAY_ADDRESS=))'
)
_FENCE = re.compile(r"^(`{3,}).*?^\1`*\s*$", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages whose sources are outside docs/."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        content = "\n".join(_notebook(files, config, path))
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=content))
    for page, content in _reference():
        files.append(File.generated(config, page, content=content))
    for verb, content in commands.pages().items():
        files.append(File.generated(config, f"commands/{verb}.md", content=content))
    files.append(File.generated(config, "llms.txt", content="\n".join(_for_language_models(config))))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Replace links between files of the repository by links between their pages; set the title of the first page."""
    if page.is_homepage:
        page.meta["title"] = config["site_description"]
    origin = {page: name for name, page in PAGES.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    if origin.startswith("docs/notebooks/"):
        origin = origin.removeprefix("docs/")

    def page_link(found: re.Match[str]) -> str:
        text, target = found.groups()
        path, mark, anchor = target.partition("#")
        if not path or "://" in path or path.startswith("mailto:") or found.start() in fenced:
            return found[0]
        place = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        home = PAGES.get(place) or place.removeprefix("docs/").replace(".ipynb", ".md")
        if files.get_file_from_path(home) is None:
            names_it = text.strip("`") in (place, place.removesuffix(".py").replace("/", "."))
            return f"`{place}`" if names_it else f"{text} (`{place}`)"
        return f"[{text}]({posixpath.relpath(home, posixpath.dirname(page.file.src_uri) or '.')}{mark}{anchor})"

    fenced = {place for block in _FENCE.finditer(markdown) for place in range(*block.span())}
    return _LINK.sub(page_link, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Mark code and cells that the style sheet keeps on one line (short) or lets wrap (long, text; commands)."""
    html = re.sub(r"<code>(?=[^<\n]{1,30}</code>)", '<code class="short">', html)
    html = re.sub(r"<code>(?=[^<\n]{90,}</code>)", '<code class="long">', html)
    html = re.sub(r"<td>((?:(?:<(?!/td)[^>]*>)*[^<\n]){60,})", r'<td class="text">\1', html)
    html = re.sub(r"<td>(?=[^<\n]{1,16}</td>)", '<td class="short">', html)
    return _COMMANDS.sub(r'<div class="commands \1', html)


def _notebook(files: Files, config: Any, path: Path) -> Iterator[str]:
    """Yield the Markdown of a notebook: its texts, its code and its outputs."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for number, cell in enumerate(content["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield f"{source}\n"
            continue
        yield f"```python\n{source}\n```\n"
        for place, output in enumerate(cell.get("outputs", ())):
            data = output.get("data", {})
            kind = next((kind for kind in ("image/png", "image/jpeg") if kind in data), "")
            if kind:
                name = f"notebooks/{path.stem}-{number}-{place}.{kind.removeprefix('image/')}"
                files.append(File.generated(config, name, content=base64.b64decode(data[kind])))
                yield f"![Output of the cell above]({Path(name).name})\n"
            elif "text/html" in data:
                # A blank line would end the HTML within the table.
                lines = filter(str.strip, "".join(data["text/html"]).splitlines())
                yield "\n".join(['<div class="output">', *lines, "</div>", ""])
            elif "text/markdown" in data:
                # A quotation, since its headings are not those of the page.
                yield "".join(f"> {line}\n" for line in "".join(data["text/markdown"]).splitlines())
            elif text := "".join(data.get("text/plain", output.get("text", ""))).rstrip():
                yield f"````text\n{text}\n````\n"


def _for_language_models(config: Any) -> Iterator[str]:
    """Yield the lines of ``llms.txt`` (llmstxt.org): name, summary, and a link to each page of docs/ with its title."""
    yield from (f"# {config['site_name']}", "", f"> {config['site_description']}", "")
    for section in config["nav"]:
        for title, entries in section.items():
            names = [name for name in (entries if isinstance(entries, list) else [entries]) if isinstance(name, str)]
            pages = [ROOT / "docs" / name for name in names if (ROOT / "docs" / name).is_file()]
            if pages:
                yield from (f"## {title}", "")
                for page in pages:
                    heading = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
                    yield f"- [{heading}]({page.stem}.html)"
                yield ""


def _reference() -> Iterator[tuple[str, str]]:
    """Yield the pages of the public interface: the list of its names, and a page of each, from its docstring."""
    import curation

    names = [name for name in curation.__all__ if name != "__version__"]
    summaries = {name: (inspect.getdoc(getattr(curation, name)) or "").partition("\n")[0] for name in names}
    title = "Python reference: build, audit and score open-set benchmarks"
    promise = "These names keep their meaning within a major version. Other modules may change in any version."
    rows = [f"| [`curation.{name}`](api/{name}.md) | {summary} |" for name, summary in summaries.items()]
    lines = [f'---\ntitle: "{title}"\n---\n\n# {title}\n', f"{promise}\n", "| name | |", "|---|---|", *rows, ""]
    yield "api.md", "\n".join(lines)
    for name in names:
        home = ".".join(curation._HOMES[name])
        yield (
            f"api/{name}.md",
            f"---\ntitle: curation.{name}\n---\n\n::: {home}\n    options:\n      heading_level: 1\n",
        )
