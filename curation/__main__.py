"""``python -m curation`` is ``curation``."""

from curation.cli import main

raise SystemExit(main())
