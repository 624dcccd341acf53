"""Names of configs and splits that `datasets` accepts, one for each manifest and part."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from curation.errors import PublishError
from curation.manifest.header import Header

PARTS_CONFIG = "parts"
"""The config that lists the parts of all manifests."""
DECISIONS = "decisions"


def config_names(headers: Sequence[Header]) -> list[str]:
    """Return the config of each manifest: its name with ``-`` for ``/``, and its version where names coincide.

    Raises
    ------
    PublishError
        A manifest is named twice, or two still have one config.
    """
    plain = [header.name.replace("/", "-") for header in headers]
    times = Counter([*plain, PARTS_CONFIG])
    names = [
        name if times[name] == 1 else f"{name}-{header.version}"
        for name, header in zip(plain, headers, strict=True)
    ]
    # Evidence has a config of its own beside that of its manifest.
    taken = Counter([*names, PARTS_CONFIG, *(f"{name}-{DECISIONS}" for name in names)])
    if repeated := [name for name in names if taken[name] > 1]:
        raise PublishError(
            "Two manifests would have one config",
            where=repeated[0],
            expected="manifests of different names, or versions",
            found=", ".join(f"{header.name} {header.version}" for header in headers)[:300],
        )
    return names


def split_names(parts: Sequence[str]) -> dict[str, str]:
    r"""Return the split of each part: ``\w+``, unique (``wr0.1-hash`` becomes ``wr0_1_hash``)."""
    names: dict[str, str] = {}
    for part in parts:
        plain = re.sub(r"[^a-z0-9]", "_", part)
        plain = "all_images" if plain == "all" else plain  # `datasets` takes "all" for every split together.
        name, number = plain, 2
        while name in names.values():
            name, number = f"{plain}_{number}", number + 1
        names[part] = name
    return names
