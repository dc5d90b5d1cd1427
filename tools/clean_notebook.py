"""Puts notebooks into the one form that is committed: python tools/clean_notebook.py FILE..."""

import hashlib
import sys
from collections import Counter
from pathlib import Path

import nbformat
from nbconvert.preprocessors import CoalesceStreamsPreprocessor

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = {"tags"}
WIDGET = "application/vnd.jupyter.widget-view+json"


def normal_text(text):
    """The same notebook with nothing in it that depends on the editor, the machine or chance.

    Metadata is the course's own, cells keep their tags only, keys are sorted, printed text that arrived in
    pieces is one output. A widget leaves its picture only: without its kernel there is nothing to view. The id of a
    cell comes from its content: whatever tool saved the notebook, the same cells give the same file.
    """
    notebook = nbformat.reads(text, as_version=4)
    notebook, _ = CoalesceStreamsPreprocessor().preprocess(notebook, {})
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat_minor = 5
    seen = Counter()
    for cell in notebook.cells:
        kept = {key: value for key, value in cell.metadata.items() if key in CELL_METADATA and value}
        cell.metadata = nbformat.from_dict(kept)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET, None)
        content = f"{cell.cell_type}\n{cell.source}"
        cell.id = hashlib.sha256(f"{content}\n{seen[content]}".encode()).hexdigest()[:8]
        seen[content] += 1
    return nbformat.writes(notebook) + "\n"


def clean(path):
    """Rewrite one notebook in the normal form; leave the file alone if it is in it."""
    before = path.read_text(encoding="utf-8")
    after = normal_text(before)
    if after != before:
        path.write_text(after, encoding="utf-8", newline="\n")
        print(f"cleaned {path}")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        clean(Path(argument))
