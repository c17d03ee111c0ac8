"""Draws figures/front.png, the report and the studio of a TX40 beside each other: `python docs/front_picture.py`.

It needs the extras `studio` and `dev` and a Chromium. Draw it again when the report or the studio look different.
"""

from __future__ import annotations

import base64
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from dynid.cli.demo import run_demo

TARGET = Path(__file__).parent / "figures" / "front.png"
SIZE = {"width": 1160, "height": 1000}
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
PAGE = """<style>body{{margin:0;padding:14px;display:flex;gap:14px;background:#eef1f4;font:600 20px sans-serif}}
figure{{margin:0;flex:1;color:#1d2b3a}}figcaption{{padding:2px 0 8px}}
img{{width:100%;border-radius:8px;border:1px solid #c3cad2;display:block}}</style>
<figure><figcaption>dynid report</figcaption><img src="data:image/png;base64,{report}"></figure>
<figure><figcaption>dynid studio</figcaption><img src="data:image/png;base64,{studio}"></figure>"""


def report(browser: Browser, folder: Path) -> bytes:
    """The top of the report of `dynid demo`."""
    run_demo().report(folder / "report.html")
    page = browser.new_page(viewport=SIZE)
    page.goto((folder / "report.html").as_uri())
    page.wait_for_timeout(1500)
    return page.screenshot()


def studio(browser: Browser, folder: Path) -> bytes:
    """The studio with the robot and its ellipsoids of equal inertia."""
    command = [sys.executable, "-m", "dynid", "studio", "tx40", str(folder / "work"), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        page = browser.new_page(viewport=SIZE)
        for _ in range(60):
            try:
                page.goto(address)
                break
            except Exception:
                page.wait_for_timeout(500)
        page.get_by_role("tab", name="Robot").wait_for(timeout=120_000)
        page.get_by_role("checkbox", name="inertias").click()
        page.wait_for_timeout(3000)
        return page.screenshot()
    finally:
        server.terminate()
        server.wait(10)


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as play, tempfile.TemporaryDirectory() as name:
        browser = play.chromium.launch(executable_path=chromium, args=FLAGS)
        shots = {"report": report(browser, Path(name)), "studio": studio(browser, Path(name))}
        page = browser.new_page(viewport={"width": 1600, "height": 740})
        page.set_content(PAGE.format(**{k: base64.b64encode(v).decode() for k, v in shots.items()}))
        page.wait_for_timeout(500)
        whole = page.screenshot(full_page=True)
        browser.close()
    Image.open(io.BytesIO(whole)).convert("RGB").quantize(128).save(TARGET, optimize=True)
    print(f"{TARGET}: {TARGET.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
