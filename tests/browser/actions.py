"""The console's choice of what happened to a text."""

from playwright.sync_api import Page


def choose(page: Page, mode: str) -> None:
    """Opens the choice where it is closed, and takes a mode by its name."""
    if not page.locator("#modes").evaluate("details => details.open"):
        page.locator("#modes summary").click()
    page.get_by_role("radio", name=mode).check(force=True)
