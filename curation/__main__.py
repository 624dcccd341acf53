"""``python -m curation`` is ``curation``."""

from curation.core import process


def main() -> int:
    """Run the command line as a separate process."""
    return process.enter("curation.cli:main")


if __name__ == "__main__":
    raise SystemExit(main())
