"""Rules for some benchmarks only: KI, related classes among synsets; LK, leaks into a training corpus.

KI compares classes, not images; every finding of related classes states what it does not prove
(`curation.signals.hierarchy.related_classes.NOT_PROVEN`). LK runs if a leak check is given (`curation.leaks`) or the
rule is named, because a benchmark does not know on which corpus a model was trained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from curation.core.wording import counted
from curation.extensions.audit.rule import Check, Finding, Verdict, undecidable
from curation.extensions.audit.target import SHOWN_EXAMPLES, AuditTarget
from curation.signals.hierarchy.class_lists import class_in
from curation.signals.hierarchy.related_classes import NOT_PROVEN, ClassKin, Relation, class_kin

CLASSES = "the wnids of known and of unknown classes; of a list of images: `curation hierarchy related LIST ilsvrc2012`"
_VERDICTS: dict[Relation, Verdict] = {"same": "fail", "below": "warn", "above": "info"}
_MEANINGS: dict[Relation, str] = {
    "same": "known classes themselves",
    "below": "below a known class, so that their images are images of it,",
    "above": "above a known class, and their images may be of it,",
}


def has_synsets(target: AuditTarget) -> bool:
    """Return whether a class of the benchmark is named by a wnid."""
    return any(class_in(entry.name) == entry.name for entry in target.classes)


def unknown_classes_are_no_relatives(target: AuditTarget) -> Iterator[Finding]:
    """KI1: no unknown class is a known one, or below or above one in WordNet 3.0, all parents kept."""
    names = [tuple(entry.name for entry in target.classes if entry.role == role) for role in ("known", "unknown")]
    cases = [(task.name, task.known, task.unknown) for task in target.tasks if task.unknown]
    images = _images(target)
    for about, known, unknown in cases or [("classes", names[0], names[1])]:
        if not (known and unknown):
            yield undecidable(about, CLASSES, f"no {'unknown' if known else 'known'} class is named")
        else:
            yield from _findings(class_kin(unknown, known, images=images, name=about))


def _images(target: AuditTarget) -> dict[str, int] | None:
    """Return the number of test images of each class, or None if their names do not contain wnids."""
    image_ids = target.ids[target.mask(target.with_role("test", "wilderness"))].tolist()
    counts = Counter(class_in(text.partition(":")[2] or text) for text in image_ids)
    return {wnid: count for wnid, count in counts.items() if wnid} or None


def _findings(links: ClassKin) -> Iterator[Finding]:
    related = False
    for relation, verdict in _VERDICTS.items():
        if names := links.of(relation):
            related = True
            count = links.images_of(names)
            images = "" if count is None else f", {counted(count, 'image')},"
            text = (
                f"{len(names):,} of {len(links.unknown.names):,} unknown classes"
                f"{images} are {_MEANINGS[relation]} by {links.origin}; "
                f"{'; '.join(NOT_PROVEN)}"
            )
            yield Finding(verdict, links.name, len(names), text, _examples(links, names))
    absent = [*links.unknown.absent, *links.known.absent]
    if absent:
        classes = counted(len(absent), "class", "classes")
        text = f"{classes} missing from the table of {links.origin}, which does not mean that they have no relatives"
        yield undecidable(links.name, CLASSES, text, tuple(sorted(absent)[:SHOWN_EXAMPLES]))
    elif not related:
        text = (
            f"none of {len(links.unknown.names):,} unknown classes is related to a known one; {'; '.join(NOT_PROVEN)}"
        )
        yield Finding("pass", links.name, text=text)


def _examples(links: ClassKin, names: Sequence[str]) -> tuple[str, ...]:
    first = sorted(names)[:SHOWN_EXAMPLES]
    return tuple(f"{links.labels[name]}, nearest {links.labels[links.relatives[name].known[0]]}" for name in first)


CHECK = "a leak check of the corpus: curation similarity leaks MANIFEST --corpus SHARDS --out DIR, then --leaks DIR"
PHOTOS = "the photos of these images: curation similarity leaks … --photos DIR"
READABLE = "corpus images that can be decoded: unreadable.csv of the leak check names them"


def no_image_is_in_the_corpus(target: AuditTarget) -> Iterator[Finding]:
    """LK1: no image is in the corpus by its pixels, nearly, or mirrored."""
    from curation.extensions.leaks.report import WHOLE

    leaks = target.leaks
    if leaks is None:
        yield undecidable("corpus", CHECK)
        return
    parts = {name: part for name, part in leaks.parts.items() if name != WHOLE} or {"all lists": leaks.parts[WHOLE]}
    for name, part in parts.items():
        if part.compared < part.images:
            images = counted(part.images, "image")
            text = f"no readable photo in the leak check for {part.images - part.compared:,} of {images}"
            yield undecidable(name, PHOTOS, text)
        if part.leaked:
            kinds = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in part.leaked_by.items() if count)
            text = f"{leaks.corpus.name} holds {part.leaked:,} of {counted(part.compared, 'image')} ({kinds})"
            yield Finding("fail", name, part.leaked, text, part.examples)
        elif part.compared:
            text = (
                f"none of {counted(part.compared, 'image')} found among {leaks.corpus.images:,} of {leaks.corpus.name}"
            )
            yield Finding("pass", name, text=text + leaks.missed)
    if leaks.corpus.unreadable:
        text = f"{counted(leaks.corpus.unreadable, 'unreadable image')} in {leaks.corpus.name}"
        yield undecidable(leaks.corpus.name, READABLE, text)


CHECKS: dict[str, Check] = {"KI1": unknown_classes_are_no_relatives, "LK1": no_image_is_in_the_corpus}
