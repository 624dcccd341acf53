"""LK, leaks: no image of the benchmark is in the corpus that models are trained on.

Told where a leak check is given (`curation.leaks`), or where the rule is asked for by name: which corpus a model was
trained on, a benchmark cannot know.
"""

from __future__ import annotations

from collections.abc import Iterator

from curation.audit.rule import Check, Finding, undecidable
from curation.audit.target import AuditTarget
from curation.wording import counted

CHECK = "a leak check of the corpus: curation similarity leaks MANIFEST --corpus SHARDS --out DIR, then --leaks DIR"
PHOTOS = "the photos of these images: curation similarity leaks … --photos DIR"
READABLE = "corpus images that can be decoded: unreadable.csv of the leak check names them"


def no_image_is_in_the_corpus(target: AuditTarget) -> Iterator[Finding]:
    """LK1: no image is in the corpus by its pixels, nearly, or mirrored."""
    from curation.leaks.report import WHOLE

    found = target.leaks
    if found is None:
        yield undecidable("corpus", CHECK)
        return
    parts = {name: one for name, one in found.parts.items() if name != WHOLE} or {"all lists": found.parts[WHOLE]}
    for name, one in parts.items():
        if one.compared < one.images:
            images = counted(one.images, "image")
            text = f"no readable photo in the leak check for {one.images - one.compared:,} of {images}"
            yield undecidable(name, PHOTOS, text)
        if one.leaked:
            kinds = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in one.leaked_by.items() if count)
            text = f"{found.corpus.name} holds {one.leaked:,} of {counted(one.compared, 'image')} ({kinds})"
            yield Finding("fail", name, one.leaked, text, one.examples)
        elif one.compared:
            text = (
                f"none of {counted(one.compared, 'image')} found among {found.corpus.images:,} of {found.corpus.name}"
            )
            yield Finding("pass", name, text=text + found.missed)
    if found.corpus.unreadable:
        text = f"{counted(found.corpus.unreadable, 'unreadable image')} in {found.corpus.name}"
        yield undecidable(found.corpus.name, READABLE, text)


CHECKS: dict[str, Check] = {"LK1": no_image_is_in_the_corpus}
