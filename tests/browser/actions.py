"""What people do with the console, in a few words, and what axe-core says of a page."""

from concurrent.futures import ThreadPoolExecutor

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page
from typer.testing import CliRunner, Result

from ttmark.services.cli.main import app


def sign_in(page: Page, token: str) -> None:
    """Types the token."""
    page.get_by_label("Access token").fill(token)
    page.keyboard.press("Enter")


def choose(page: Page, mode: str) -> None:
    """Opens the choice of what happened to a text where it is closed, and takes a mode by its name."""
    if not page.locator("#modes").evaluate("details => details.open"):
        page.locator("#modes summary").click()
    page.get_by_role("radio", name=mode).check(force=True)


def check(page: Page, text: str | None = None, mode: str = "Unedited", fpr: str = "1e-5") -> None:
    """Asks for a verdict on a text, or on what the box holds."""
    if text is not None:
        page.get_by_label("Text to check").fill(text)
    choose(page, mode)
    page.get_by_label("False alarms").select_option(fpr)
    page.get_by_role("button", name="Check the text").click()


def file(name: str, content: bytes | str) -> dict[str, object]:
    """A file as `set_input_files` takes it."""
    raw = content.encode() if isinstance(content, str) else content
    return {"name": name, "mimeType": "application/octet-stream", "buffer": raw}


def give(page: Page, *files: dict[str, object]) -> None:
    """Opens files in the console."""
    page.locator("#file").set_input_files(files)


def row(page: Page, name: str) -> Locator:
    """The line of a file in the list."""
    return page.locator("#batch-list tr").filter(has_text=name)


def faultless(page: Page, state: str) -> None:
    """axe-core finds nothing wrong with the page."""
    results = Axe().run(page)
    assert results.violations_count == 0, f"{state}: {results.generate_report()}"


def invoke(command: list[str]) -> Result:
    """Runs `ttmark` on a thread of its own: Playwright's event loop runs on this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(CliRunner().invoke, app, command).result()
