"""``python -m curation.demo --out FOLDER``."""

from curation import edge

if __name__ == "__main__":
    raise SystemExit(edge.enter("curation.demo.run:main"))
