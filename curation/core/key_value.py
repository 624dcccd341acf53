"""KEY=VALUE texts: one reader for every option that takes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from curation.core.errors import UsageError


def pairs(
    texts: Sequence[str],
    option: str,
    *,
    bare: str | Callable[[str], str] | None = None,
    known: Collection[str] | None = None,
    names: Sequence[str] = (),
) -> dict[str, str]:
    """Return KEY=VALUE texts by key; a malformed or repeated one is a `UsageError`.

    Parameters
    ----------
    texts : sequence of str
    option : str
        As it is typed, for messages.
    bare : str or callable, optional
        The key of a text without ``=``, or what makes it from the text, which is refused where this is None.
    known : collection of str, optional
        With `bare`: the only keys; any other text is a bare value, which may hold a ``=``.
    names : sequence of str
        Keys that there are, to say how several bare values are told apart.
    """
    given: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if bare is not None and (not equals or (known is not None and key not in known)):
            key, value = bare if isinstance(bare, str) else bare(text), text
        elif not (key and equals and value):
            raise UsageError(
                f"{option} needs NAME=VALUE",
                where=f"{option} {text[:200]}",
                expected=f"{option} NAME=VALUE",
                found="no name" if not key or not equals else "no value",
            )
        if key in given:
            what = f"names {key!r} twice" if key else "is given twice for all"
            error = UsageError(f"{option} {what}", where=f"{option} {text[:200]}", expected="each name once")
            if not key:
                error.expected = f"{option} {'|'.join(names) or 'NAME'}=VALUE, each with its name"
                values = zip(names, (given[key], text), strict=False)
                error.hint = " ".join(f"{option} {name}={value}" for name, value in values) or None
            raise error
        given[key] = value
    return given
