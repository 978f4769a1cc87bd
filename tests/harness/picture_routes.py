"""`python -m tests.harness.picture_routes SMOLLM2 [COUNT [FIRST]]`: marks in pictures.

COUNT answers of each kind, FIRST passed over, are shown as a chat or printed by Chromium, and screenshots,
scans and photographs of them are read; then screenshots of 100 texts by people.
"""

import gzip
import io
import json
import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2
from PIL import Image, ImageFilter
from playwright.sync_api import Browser, sync_playwright

import ttmark
from tests.harness.file_routes import KINDS, Answer, chosen, pandoc, print_table
from ttmark.detect_service.features.files.formats.readers_by_format import extract_text

PEOPLE = Path(__file__).parents[2] / "gen_service/demo_model/human.jsonl.gz"
LENGTH = 1_500
CHAT = """<!doctype html><html lang=en><meta charset=utf-8><style>
body {{ margin: 0; font: 16px/1.5 'Liberation Sans'; color: {ink}; background: {paper} }}
main {{ max-width: 720px; margin: 24px auto }}
.asked {{ margin: 0 0 24px auto; width: fit-content; padding: 10px 16px; background: #8882 }}
</style><main><div class=asked>Tell me more about it, please.</div>{page}</main></html>"""
PRINTED = "<style>body {{ font: 11pt/1.4 'Liberation Serif' }}</style>{}"
MARGIN = dict.fromkeys(("top", "bottom", "left", "right"), "20mm")


class Routes:
    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._random = np.random.default_rng(1)

    def screen(self, text: str, scale: int, ink: str = "#1f2328", paper: str = "white") -> bytes:
        size: Any = {"width": 1000, "height": 700}
        page = self._browser.new_page(viewport=size, device_scale_factor=scale)
        page.set_content(CHAT.format(page=_page(text), ink=ink, paper=paper))
        picture = page.screenshot(full_page=True)
        page.close()
        return picture

    def _printed(self, text: str, dpi: int) -> list[Image.Image]:
        page = self._browser.new_page()
        page.set_content(PRINTED.format(_page(text)))
        file: Any = page.pdf(format="A4", margin=MARGIN)  # type: ignore[arg-type]
        page.close()
        return [page.render(scale=dpi / 72, grayscale=True).to_pil() for page in pypdfium2.PdfDocument(file)]

    def _noisy(self, image: Image.Image, deviation: float) -> Image.Image:
        pixels = np.asarray(image, dtype=np.float64)
        noise = self._random.normal(0, deviation, pixels.shape)
        return Image.fromarray((pixels + noise).clip(0, 255).astype(np.uint8))

    def scan(self, text: str, dpi: int, kind: str) -> bytes:
        """Pages up to half a degree askew, with noise."""
        pages = []
        for page in self._printed(text, dpi):
            askew = page.rotate(self._random.uniform(-0.5, 0.5), Image.Resampling.BICUBIC, fillcolor=255)
            pages.append(self._noisy(askew, 8))
        file = io.BytesIO()
        pages[0].save(file, kind, save_all=True, append_images=pages[1:], resolution=dpi)
        return file.getvalue()

    def photograph(self, text: str) -> bytes:
        """The first page on a table: in perspective, with light from one side, unsharp, with noise."""
        page = self._printed(text, 200)[0]
        table = Image.new("L", (page.width + 300, page.height + 300), 90)
        table.paste(page, (150, 150))
        width, height = table.size
        corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float64)
        moved = corners + self._random.uniform(-0.05, 0.05, (4, 2)) * table.size
        equations = []
        for (x, y), (u, v) in zip(moved, corners, strict=True):
            equations += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        lens = np.linalg.solve(np.array(equations), corners.ravel()).tolist()
        seen = table.transform(
            table.size, Image.Transform.PERSPECTIVE, lens, Image.Resampling.BICUBIC, fillcolor=90
        )
        down, right = np.mgrid[0:height, 0:width]
        angle = self._random.uniform(0, 2 * np.pi)
        light = np.cos(angle) * right / width + np.sin(angle) * down / height
        light = 0.45 + 0.5 * (light - light.min()) / (light.max() - light.min())
        lit = Image.fromarray((np.asarray(seen) * light).astype(np.uint8)).filter(
            ImageFilter.GaussianBlur(0.8)
        )
        file = io.BytesIO()
        self._noisy(lit, 6).save(file, "JPEG", quality=80)
        return file.getvalue()


def _page(text: str) -> str:
    page = pandoc("html", "gfm+hard_line_breaks", text).decode()
    return page[page.index("<body>") + 6 : page.index("</body>")]


def people(routes: Routes, answers: list[Answer], folder: str) -> None:
    """Prints how many screenshots of texts by people are found at 1e-5."""
    with gzip.open(PEOPLE, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    found, least = 0, 0.0
    some = [text for text in texts if len(text) > LENGTH][:100]
    for number, text in enumerate(some):
        read = extract_text("a.png", routes.screen(text[:LENGTH], 1)).text
        result: Any = ttmark.detect(read, answers[number % len(answers)].key, model=folder)
        found += result.log10_p <= -5
        least = min(least, result.log10_p)
    print(f"of {len(some)} texts by people {found} are found at 1e-5; the least log10 p is {least:.1f}")


def main() -> None:
    model, *more = sys.argv[1:]
    count, first = (int(given) for given in (*more, *("4", "0")[len(more) :]))
    every = list(chosen(model, first + count))
    answers = [one for kind in KINDS for one in islice((a for a in every if a.kind == kind), first, None)]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        routes = Routes(browser)
        made: dict[str, Callable[[str], bytes]] = {
            "screenshot, 96 dpi.png": lambda text: routes.screen(text, 1),
            "screenshot, 192 dpi.png": lambda text: routes.screen(text, 2),
            "screenshot, white on black, 96 dpi.png": lambda text: routes.screen(text, 1, "#eee", "#111"),
            "scan, 150 dpi.tiff": lambda text: routes.scan(text, 150, "TIFF"),
            "scan, 300 dpi.pdf": lambda text: routes.scan(text, 300, "PDF"),
            "photograph.jpeg": routes.photograph,
        }
        print_table({name: partial(_read, name, make) for name, make in made.items()}, answers, model)
        people(routes, answers, model)


def _read(name: str, make: Callable[[str], bytes], text: str) -> str:
    return extract_text(name, make(text)).text


if __name__ == "__main__":
    main()
