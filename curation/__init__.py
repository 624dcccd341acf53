"""Open-set evaluation data you can trust: benchmarks, manifests, and the scores that belong to them.

The names in ``__all__`` are the public interface; each is loaded when it is first used. Everything else can be
imported, but is not promised.
"""

from curation.version import __version__ as __version__


def _homes() -> dict[str, tuple[str, str]]:
    """Return where each public name is, read from the stub that type checkers read."""
    homes = {}
    # Without pathlib, which takes longer to import than all of this.
    with open(__file__.rpartition(".")[0] + ".pyi", encoding="utf-8") as stub:  # noqa: PTH123
        for line in stub:
            module, found, names = line.removeprefix("from ").partition(" import ")
            for pair in names.split(",") if found and module.startswith("curation") else ():
                attribute, _, name = pair.strip().partition(" as ")
                homes[name] = (module, attribute)
    return homes


_HOMES = _homes()
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOMES:
        from difflib import get_close_matches

        near = get_close_matches(name, __all__, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    module, attribute = _HOMES[name]
    # `evaluate` and `methods` are modules.
    if name in ("evaluate", "methods"):
        return import_module(f"{module}.{attribute}")
    value: object = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
