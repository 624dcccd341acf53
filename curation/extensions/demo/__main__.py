"""``python -m curation.extensions.demo --out FOLDER``."""

from curation.core import edge

if __name__ == "__main__":
    raise SystemExit(edge.enter("curation.extensions.demo.run:main"))
