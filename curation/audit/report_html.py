"""The report of an audit as one HTML page: no script, no other file, for screen, phone and paper, light and dark."""

from __future__ import annotations

from collections.abc import Sequence

from curation import __version__
from curation.audit.forensics import overlap_matrix
from curation.audit.needs import label_warnings
from curation.audit.report import task_composition
from curation.audit.report_figures import MOST_LISTS, clean, composition_svg, overlap_svg
from curation.audit.rule import VERDICTS, Finding
from curation.audit.run import Audit, RuleResult

Section = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""Title, column names and rows of a further table, such as the forensics of the lists."""

_PRINCIPLES = {
    "CO": "Class openness",
    "TI": "Task increment",
    "AS": "Annotation specificity",
    "LI": "Label integrity",
    "DS": "Data specificity",
}
_KIND = {
    "fail": "bad",
    "warn": "warn",
    "undecidable": "open",
    "info": "info",
    "pass": "good",
    "not applicable": "none",
}
_LONGEST = 400
_MOST_FINDINGS = 16
_OPEN = ("fail", "warn")

_STYLE = """
:root{color-scheme:light dark;--ink:#1d2126;--mute:#5d6670;--line:#d9dde2;--back:#fff;--soft:#f4f6f8;--blue:#0b62a8;
--bad:#b3261e;--warn:#8a5300;--open:#5b4b9a;--info:#0b62a8;--good:#1b6e3c;--none:#5d6670}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ec;--mute:#9aa4ae;--line:#363c44;--back:#14171a;--soft:#1d2126;
--blue:#6cb2f0;--bad:#ff8a80;--warn:#f0b35a;--open:#b9a7f5;--info:#6cb2f0;--good:#7ed79a;--none:#9aa4ae}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.25rem;max-width:68rem;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:2rem 0 .5rem}
p{margin:.35rem 0}
.mute{color:var(--mute)}
code{font:13px/1.45 ui-monospace,monospace;overflow-wrap:anywhere}
.tag{display:inline-block;min-width:5.6rem;padding:.05rem .5rem;border:1px solid currentColor;border-radius:1rem;
font-size:12.5px;text-align:center;white-space:nowrap;justify-self:start}
.bad{color:var(--bad)}.warn{color:var(--warn)}.open{color:var(--open)}.info{color:var(--info)}
.good{color:var(--good)}.none{color:var(--none)}
.tally{display:flex;flex-wrap:wrap;gap:.4rem .8rem;margin:.8rem 0}
details{border:1px solid var(--line);border-radius:.5rem;margin:.4rem 0;background:var(--soft)}
summary{display:grid;grid-template-columns:3rem 7rem minmax(0,1fr) auto;gap:.2rem .7rem;align-items:baseline;
padding:.5rem .75rem;cursor:pointer}
summary b{font-variant-numeric:tabular-nums}
.body{padding:0 .75rem .6rem}
.body ul{margin:.3rem 0;padding-left:1.2rem}
.body li{margin:.2rem 0}
.examples{display:block;color:var(--mute)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:14px}
th,td{text-align:left;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}
td code{display:block;min-width:12rem}
th{color:var(--mute);font-weight:600}
svg{font:12px system-ui,sans-serif;max-width:none}
svg text{fill:var(--ink)}svg text.mute{fill:var(--mute)}svg text.strong{font-weight:600}
svg .bar,svg .cell{fill:var(--blue)}svg .bar{fill-opacity:.4}svg .hidden{fill:var(--blue)}
svg text.on{fill:var(--back)}
footer{margin-top:2rem;border-top:1px solid var(--line);padding-top:.5rem}
@media (max-width:40rem){summary{grid-template-columns:3rem minmax(0,1fr) auto}
summary .what{grid-column:1/-1;grid-row:2}}
@media print{body{max-width:none;padding:0;font-size:11px}details{break-inside:avoid;background:none}
.scroll{overflow:visible}svg{max-width:100%;height:auto}}
"""


def report_html(audit: Audit, *, digest: str = "", sections: Sequence[Section] = ()) -> str:
    """Return the page.

    Parameters
    ----------
    digest : str
        Of the manifest, ``""`` for a folder.
    sections : sequence of Section
        Further tables after the rules.
    """
    title = f"Audit of {clean(audit.target.name, 200)}"
    body = [
        _head(audit, title, digest),
        *(_principle(prefix, name, audit) for prefix, name in _PRINCIPLES.items()),
        _figures(audit),
        *(_section(*one) for one in sections),
        _inputs(audit),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{''.join(body)}"
        f'<footer class="mute">curation {clean(__version__)}; rules after Zhao et al., Revisiting Open World Object '
        "Detection, arXiv 2201.00471</footer>\n</body>\n</html>\n"
    )


def _head(audit: Audit, title: str, digest: str) -> str:
    broken = [one.rule.name for one in audit.results if one.outcome.verdict == "fail"]
    word = (
        f'<b class="bad">Fails {", ".join(broken)}.</b>'
        if broken
        else '<b class="good">No rule is broken.</b>'
    )
    undecided = sum(one.outcome.verdict == "undecidable" for one in audit.results)
    rest = f" {undecided} rules are undecidable: data are missing, each rule says which." if undecided else ""
    tally = "".join(
        f'<span><span class="tag {_KIND[verdict]}">{verdict}</span> {count}</span>'
        for verdict, count in audit.tally().items()
    )
    pinned = f'<p class="mute"><code>{clean(digest)}</code></p>' if digest else ""
    warnings = "".join(
        f'<p><b class="warn">Warning:</b> {clean(text, _LONGEST)}.</p>\n'
        for text in label_warnings(audit.target)
    )
    return (
        f'<header>\n<h1>{title}</h1>\n{pinned}<p>{word}{rest}</p>\n<div class="tally">{tally}</div>\n'
        f"{warnings}</header>\n"
    )


def _principle(prefix: str, name: str, audit: Audit) -> str:
    results = [one for one in audit.results if one.rule.name.startswith(prefix)]
    if not results:
        return ""
    return f"<section>\n<h2>{name}</h2>\n{''.join(map(_rule, results))}</section>\n"


def _rule(result: RuleResult) -> str:
    rule, outcome = result.rule, result.outcome
    count = f"{outcome.count:,}" if outcome.count else ""
    tag = f'<span class="tag {_KIND[outcome.verdict]}">{outcome.verdict}</span>'
    fix = f"<p><b>How to fix:</b> {clean(rule.fix, _LONGEST)}.</p>" if outcome.verdict in _OPEN else ""
    needs = "".join(f"<p><b>Missing:</b> {clean(one, _LONGEST)}.</p>" for one in outcome.needs)
    return (
        f"<details{' open' if outcome.verdict in _OPEN else ''}>\n<summary><b>{rule.name}</b>{tag}"
        f'<span class="what">{clean(rule.definition, _LONGEST)}</span><b>{count}</b></summary>\n'
        f'<div class="body">{needs}<ul>{_findings(outcome.findings)}</ul>{fix}'
        f'<p class="mute">Severity: {rule.severity}. Needs {clean(rule.needs, _LONGEST)}.</p></div>\n</details>\n'
    )


def _findings(findings: Sequence[Finding]) -> str:
    """Return the items of a rule, the strongest verdicts first, the first few of a long list."""
    ranked = sorted(findings, key=lambda one: VERDICTS.index(one.verdict))
    rest = len(ranked) - _MOST_FINDINGS
    more = f'<li class="mute">and {rest} more: --out DIR writes all of them</li>' if rest > 0 else ""
    return "".join(map(_finding, ranked[:_MOST_FINDINGS])) + more


def _finding(finding: Finding) -> str:
    colon = ": " if finding.text else ""
    about = f"<b>{clean(finding.about, 160)}</b>{colon}" if finding.about else ""
    text = clean(finding.text, _LONGEST)
    shown = "; ".join(finding.examples)
    examples = f'<code class="examples">{clean(shown, 900)}</code>' if shown else ""
    return f'<li><span class="{_KIND[finding.verdict]}">{finding.verdict}</span> {about}{text}{examples}</li>'


def _figures(audit: Audit) -> str:
    target = audit.target
    parts = []
    if target.tasks and target.lists:
        tasks = task_composition(target)
        bound = ", as far as is known" if any(one.hiding_at_least for one in tasks) else ""
        parts.append(
            f'<section>\n<h2>Tasks</h2>\n<div class="scroll">{composition_svg(tasks)}</div>\n'
            '<p class="mute">Classes: introduced, and known by then. The strong part of a train bar: images that hide '
            f"objects of classes still unknown{bound}.</p>\n</section>\n"
        )
    lists = [one for one in target.files if one.at_hand][:MOST_LISTS]
    if len(lists) > 1:
        shared = overlap_matrix([one.unique for one in lists], len(target.ids)).tolist()
        figure = overlap_svg([one.name for one in lists], shared)
        more = len([one for one in target.files if one.at_hand]) - len(lists)
        rest = f" The first {MOST_LISTS} lists are shown, {more} are not." if more > 0 else ""
        parts.append(
            f'<section>\n<h2>What lists share</h2>\n<div class="scroll">{figure}</div>\n'
            f"<p class=\"mute\">Share of the distinct images of the row's list that stand in the column's.{rest}</p>\n"
            "</section>\n"
        )
    return "".join(parts)


def _section(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{clean(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(map(_table_cell, row)) + "</tr>\n" for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if any(columns) else ""
    return (
        f'<section>\n<h2>{clean(title)}</h2>\n<div class="scroll"><table>{top}<tbody>\n{body}</tbody></table></div>\n'
        "</section>\n"
    )


def _table_cell(cell: str) -> str:
    text = clean(cell, _LONGEST)
    return f"<td><code>{text}</code></td>" if cell.startswith("sha256:") else f"<td>{text}</td>"


def _inputs(audit: Audit) -> str:
    target = audit.target
    lists = _section(
        "Lists",
        ("list", "lines", "images", "part", "digest"),
        [
            (
                one.name,
                f"{len(one.members):,}" if one.at_hand else "not at hand",
                f"{len(one.unique):,}" if one.at_hand else "",
                "; ".join(_roles_of(audit, one.file)),
                target.digests.get(one.name, ""),
            )
            for one in target.files
        ],
    )
    if not target.sources:
        return lists
    rows = [
        (source.name, f"{source.raw.dataset} {source.raw.part}", source.unit, file.name, file.sha256)
        for source in target.sources
        for file in source.raw.files
    ]
    return lists + _section("Sources", ("name", "dataset", "holds", "file", "digest"), rows)


def _roles_of(audit: Audit, file: str) -> list[str]:
    remarks = [text.partition(": ")[2] for text in audit.target.remarks if text.partition(": ")[0] == file]
    sliced = [text for text in audit.target.remarks if text.startswith(f"{file}[")]
    declared = [
        f"{one.role} of {', '.join(audit.target.tasks[number].name for number in one.tasks) or 'all'}"
        for one in audit.target.lists
        if one.file == file and audit.target.kind == "manifest"
    ]
    return remarks + sliced + declared
