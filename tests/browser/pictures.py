"""Takes the pictures of the pages in docs/images from services that run.

`ttmark up`, then `python -m tests.browser.pictures --generation http://127.0.0.1:8000 --detection
http://127.0.0.1:8001 --state .ttmark`. The model has to chat.
"""

import argparse
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.actions import sign_in
from tests.browser.conftest import CHROMIUM_FLAGS
from tests.harness.imports import ROOT
from ttmark.services.cli.demonstration import human_text
from ttmark.shared.client import Client

IMAGES = ROOT / "docs/images"
QUESTIONS = (
    "Write a letter to a friend about a week of walking in the mountains.",
    "What should I think of when I choose a place to live?",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generation", required=True)
    parser.add_argument("--detection", required=True)
    parser.add_argument("--state", type=Path, required=True)
    given = parser.parse_args()
    token = (given.state / "token").read_text().strip()
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        files = _files(Path(folder), Client(given.generation, token))
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        for name, file, scheme, width, height in (
            ("console-light", "report.txt", "light", 1280, 1180),
            ("console-dark", "report.txt", "dark", 1280, 1180),
            ("console-phone", "report.txt", "light", 390, 844),
            ("console-not-found", "manual-page.txt", "light", 1280, 1180),
        ):
            page = _opened(browser, given.detection, token, scheme, width, height)
            _check(page, [files[file]])
            page.screenshot(path=IMAGES / f"{name}.png")
        _check(page := _opened(browser, given.detection, token, height=800), [*files.values()])
        page.locator("#batch").scroll_into_view_if_needed()
        page.screenshot(path=IMAGES / "console-files.png")
        page = _opened(browser, given.detection, token, height=800)
        page.locator("#file").set_input_files([files["picture.gif"]])
        page.locator("#check").click()
        page.locator("#batch-list tr.failed").wait_for()
        page.screenshot(path=IMAGES / "console-rejected-file.png")
        page = _opened(browser, f"{given.generation}/playground", token, height=900)
        page.get_by_label("Prompt").fill(QUESTIONS[0])
        page.get_by_role("button", name="Write").click()
        page.locator("#count", has_text="blocks carry the mark").wait_for(timeout=300_000)
        page.screenshot(path=IMAGES / "playground-light.png")
        browser.close()


def _files(folder: Path, generation: Client) -> dict[str, Path]:
    """A text by a person with generated passages, one by a person, one generated, one line, and no text."""
    human, model = human_text(), generation.models().data[0].id
    letter, advice = (_answer(generation, model, question) for question in QUESTIONS)
    texts = {
        "report.txt": f"{human}\n\n{letter}\n\n{human}\n\n{advice}",
        "manual-page.txt": human,
        "letter.txt": letter,
        "note.txt": human[:120],
        "picture.gif": "GIF89a\0",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: folder / name for name in texts}


def _answer(generation: Client, model: str, question: str) -> str:
    messages = [{"role": "user", "content": question}]
    answer = generation.chat({"model": model, "messages": messages, "max_tokens": 200, "seed": 1})
    return answer.choices[0].message.content or ""


def _opened(
    browser: Browser, url: str, token: str, scheme: str = "light", width: int = 1280, height: int = 1180
) -> Page:
    size, colours = {"width": width, "height": height}, "dark" if scheme == "dark" else "light"
    page = browser.new_context(viewport=size, color_scheme=colours, reduced_motion="reduce").new_page()
    page.set_default_timeout(60_000)
    page.goto(url)
    sign_in(page, token)
    page.locator("#sign-out").wait_for()
    return page


def _check(page: Page, files: list[Path]) -> None:
    page.locator("#file").set_input_files(files)
    done = page.get_by_text(f"{len(files)} of {len(files)} files")
    if len(files) == 1:
        page.wait_for_function("() => document.getElementById('text').value !== ''")
        done = page.locator("#headline")
    page.locator("#check").click()
    done.wait_for()


if __name__ == "__main__":
    main()
