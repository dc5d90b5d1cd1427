"""Takes the README's picture out of notebook 00: the chart of the first crash and its fix."""

import base64
import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "notebooks" / "00_start_here.ipynb"
PICTURE = ROOT / "docs" / "first_crash.png"


def picture():
    """The PNG that the cell `compare(naive, fixed)` shows."""
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    cell = next(cell for cell in cells if "".join(cell["source"]) == "compare(naive, fixed)")
    html = "".join(cell["outputs"][0]["data"]["text/html"])
    return base64.b64decode(re.search(r'base64,([^"]+)"', html)[1])


if __name__ == "__main__":
    PICTURE.write_bytes(picture())
