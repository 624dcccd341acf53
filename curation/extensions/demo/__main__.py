"""``python -m curation.extensions.demo --out FOLDER``."""

from curation.core import process

if __name__ == "__main__":
    raise SystemExit(process.enter("curation.extensions.demo.run:main"))
