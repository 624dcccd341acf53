"""Files from which OpenOOD's sets follow: those of ILSVRC, SSB, NINCO, MOS and ViM, of a few images each."""

import json
from pathlib import Path

from curation.extensions.benchmarks.openood import hard_classes


def lay(folder: Path) -> dict[str, Path]:
    """Three ILSVRC images of each of four classes, and a few images of every other set."""
    files = {
        "imagenet-val": "".join(f"ILSVRC2012_val_{n:08}.JPEG {n % 4}\n" for n in range(12)),
        "val_imagenet": "".join(f"imagenet_1k/val/ILSVRC2012_val_{n:08}.JPEG {n % 4}\n" for n in (2, 5)),
        "ssb": json.dumps({one: [f"{one}_{n}.JPEG" for n in (7, 3)] for one in (*hard_classes()[:3], "n00005787")}),
        "ninco": "image_location,class\nx/high heels/high heels_001_a.jpg,high heels\nx/owl/owl_002_b.GIF,owl\n",
        "inaturalist": "image_location,species,taxon\n00aa.jpg,Quercus,Plantae\n00bb.jpg,Quercus,Plantae\n",
        "textures": "banded/banded_0004.jpg\nbanded/banded_0002.jpg\n",
        "openimage_o": "ff01.jpg\nff02.jpg\nff03.jpg\n",
        "val_openimage_o": "openimage_o/images/ff02.jpg -1\n",
    }
    suffixes = {"ssb": ".json", "ninco": ".csv", "inaturalist": ".csv"}
    paths = {}
    for name, text in files.items():
        paths[name] = folder / f"{name}{suffixes.get(name, '.txt')}"
        paths[name].write_text(text, encoding="utf-8")
    return paths
