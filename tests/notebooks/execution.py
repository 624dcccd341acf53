"""Execute every notebook from a clean kernel: ``python -m tests.notebooks.execution [--write]``."""

import argparse
import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[2]


def execute(path: Path) -> nbformat.NotebookNode:
    """Return the notebook with the outputs of a fresh run in the repository's root."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}})
    client.execute()
    return notebook


def main() -> int:
    """Run all notebooks; ``--write`` keeps the outputs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="save the outputs into the notebooks")
    write = parser.parse_args().write
    # A terminal's colours and widths must not reach the saved outputs.
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    failed = 0
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        try:
            notebook = execute(path)
        except CellExecutionError as error:
            failed += 1
            print(f"{path.name}: {error}", file=sys.stderr)
            continue
        print(f"{path.name}: ran")
        if write:
            for cell in notebook.cells:
                cell.metadata.pop("execution", None)
            nbformat.write(notebook, path)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
