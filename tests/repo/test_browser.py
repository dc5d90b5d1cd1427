"""The sliders of notebook 07 in JupyterLab, in a real browser: they show, the bars follow them, nothing fails.

Needs Playwright (`pip install -e .[browser]`) and Chromium (Debian: `apt-get install chromium`); without them it is
skipped. OOM_SCREENSHOTS=folder keeps a picture of each step.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

import notebooks

sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install -e .[browser]")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
TOKEN = "browser-test"
SECONDS = 120

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")


def explorer_notebook(folder):
    """A notebook of those cells of notebook 07 that the sliders need, with the outputs that are stored."""
    (source,) = [notebook for notebook in notebooks.all_notebooks() if notebook.name.startswith("07_")]
    cells = [cell for _, cell in source.numbered_code if notebooks.tags(cell) & {"setup", "explorer"}]
    contents = nbformat.v4.new_notebook(cells=cells, metadata=notebooks.METADATA)
    nbformat.write(contents, folder / "explorer.ipynb")


@pytest.fixture
def lab(tmp_path):
    """JupyterLab on a free port, with settings of its own and without its news; its address."""
    explorer_notebook(tmp_path)
    settings = tmp_path / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {name: str(tmp_path / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")}
    own |= {"JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "settings")}
    own |= {"JUPYTERLAB_WORKSPACES_DIR": str(tmp_path / "workspaces")}
    options = ["--no-browser", "--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={TOKEN}"]
    options += [
        f"--ServerApp.root_dir={tmp_path}",
        "--ServerApp.allow_root=True",
        "--ServerApp.port_retries=0",
    ]
    with (tmp_path / "lab.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options], env=os.environ | own, stdout=log, stderr=log
        )
    try:
        yield Lab(f"http://127.0.0.1:{port}", server)
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()


class Lab:
    """What the test asks the server itself."""

    def __init__(self, address, server):
        self.address, self.server = address, server
        until(self.kernels, "JupyterLab did not start")

    def kernels(self):
        """The kernels as the server sees them, None while there is no server."""
        assert self.server.poll() is None, "JupyterLab ended"
        request = urllib.request.Request(
            f"{self.address}/api/kernels", headers={"Authorization": f"token {TOKEN}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return {"kernels": json.load(answer)}
        except OSError:
            return None

    def idle(self):
        """True once the kernel waits for work and the page is connected to it."""
        kernels = (self.kernels() or {"kernels": []})["kernels"]
        return bool(kernels) and all(
            kernel["execution_state"] == "idle" and kernel["connections"] for kernel in kernels
        )


def until(condition, failure, seconds=SECONDS):
    """Wait until a condition holds; returns its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, failure
        time.sleep(0.2)
    return value


class Sliders:
    """The page: its widgets, and what they show."""

    def __init__(self, page, lab):
        self.page, self.lab = page, lab
        self.box = page.locator(".jp-OutputArea-output .widget-vbox").last
        self.picture = self.box.locator("img.widget-image")
        self.status = self.box.locator('[role="status"]')

    def idle(self):
        return self.lab.idle() and "Idle" in self.page.locator("#jp-bottom-panel, .jp-StatusBar").inner_text()

    def wait(self):
        until(self.idle, "the kernel did not come to rest")

    def state(self):
        """The sentence, and the picture as pixels of the screen."""
        return self.status.inner_text(), self.picture.screenshot()

    def after(self, action):
        """The state when an action has had all of its effect: the picture is another one, and stays."""
        before = self.state()
        action()
        until(lambda: self.state()[1] != before[1], "the picture did not follow")
        return until(self.settled, "the picture did not come to rest")

    def settled(self):
        """The state, if the kernel has nothing to do and it stays for a second."""
        self.wait()
        state = self.state()
        time.sleep(1)
        return state if self.idle() and self.state() == state else None

    def press(self, name, key, times=1):
        handle = self.box.locator(".widget-hbox", has_text=name).locator(".noUi-handle").last
        handle.focus()
        for _ in range(times):
            self.page.keyboard.press(key)

    def choose(self, name):
        self.box.get_by_role("button", name=name, exact=True).click()

    def run_all(self):
        self.page.locator(".lm-MenuBar-item", has_text="Run").first.click()
        self.page.locator(".lm-Menu-item", has_text=re.compile("^Run All Cells")).first.click()
        self.picture.wait_for(timeout=1000 * SECONDS)
        self.wait()

    def keep(self, name):
        if folder := os.environ.get("OOM_SCREENSHOTS"):
            self.page.screenshot(path=Path(folder, f"{name}.png"))


@pytest.fixture
def sliders(lab):
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 1100})
        page.goto(f"{lab.address}/lab/tree/explorer.ipynb?token={TOKEN}", timeout=1000 * SECONDS)
        sliders = Sliders(page, lab)
        page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=1000 * SECONDS)
        sliders.wait()
        yield sliders
        browser.close()


def largest(sentence):
    """The largest batch that a sentence names; 0 if it says that none fits."""
    number = re.search(r"\d+", sentence)
    return int(number[0]) if number else 0


def test_a_picture_before_the_cell_runs_and_bars_that_follow_the_sliders_after_it(sliders):
    stored = sliders.page.locator(".jp-OutputArea-output img").last
    assert stored.is_visible()
    assert stored.evaluate("image => image.naturalWidth") == 900
    sliders.keep("0_opened")
    sliders.run_all()
    first, _ = sliders.state()
    sliders.keep("1_shown")
    assert sliders.box.locator(".noUi-handle").count() == 3
    sliders.after(lambda: sliders.press("batch", "Home"))
    sliders.keep("2_batch_of_one")
    smaller, _ = sliders.after(lambda: sliders.press("resolution", "ArrowLeft", times=4))
    sliders.keep("3_fewer_pixels")
    assert largest(smaller) > largest(first)
    sliders.after(lambda: sliders.choose("SGD"))
    halved, _ = sliders.after(lambda: sliders.choose("mixed_float16"))
    sliders.keep("4_half_precision")
    assert largest(halved) > largest(smaller)
    sliders.after(lambda: sliders.press("card", "ArrowLeft"))
    sliders.keep("5_smaller_card")
    assert sliders.page.locator(".jp-OutputArea-output", has_text=re.compile("Error|Traceback")).count() == 0
