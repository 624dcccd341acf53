"""Options of ``curation evaluate`` as the parameters that they give."""

from collections.abc import Iterable, Iterator

from curation.benchmarks.registry import evaluation_of
from curation.cli.signature import options_of


def python_words(benchmark: str, words: Iterable[object]) -> Iterator[str]:
    """Yield words of a command line with each option called as its parameter: ``--on-error boxes=drop`` as given."""
    known = list(options_of(evaluation_of(benchmark)))
    words = iter(map(str, words))
    for word in words:
        value = next(words)
        named = [one for one in known if one.flag == word]
        keyed = [(one, found) for one in named if one.key and (found := one.after_key(value)) is not None]
        one, found = keyed[0] if keyed else (next(one for one in named if not one.key), value)
        yield f"--{one.parameter}"
        yield found
