"""The site on a desk and a phone, by day and by night: axe finds nothing, no file comes from elsewhere."""

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.actions import faultless
from tests.harness.imports import ROOT

pytestmark = pytest.mark.long

DOCS = ROOT / "docs"
PAGES = ("index", "tutorials/app-developer", "results/index")
# What looks like the rest. `make check` builds the whole site.
BUILT = "index.md,tutorials/*,results/index.md"
LOOKS = (
    ("dark", 390),
    pytest.param("light", 1280, marks=pytest.mark.slow),
    pytest.param("dark", 1280, marks=pytest.mark.slow),
    pytest.param("light", 390, marks=pytest.mark.slow),
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    options = ["-q", "-D", f"include_patterns={BUILT}"]
    command = [sys.executable, "-m", "sphinx", *options, str(DOCS), str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_pages_are_accessible_and_fit(built: Path, chromium: Browser, scheme: str, width: int) -> None:
    context = chromium.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
    )
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for name in PAGES:
        page.goto((built / f"{name}.html").as_uri())
        faultless(page, name)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    context.close()
    assert [url for url in asked if not url.startswith("file:")] == []


def test_each_look_has_its_own_pictures(built: Path, chromium: Browser) -> None:
    for scheme, other in (("light", "dark"), ("dark", "light")):
        page = chromium.new_page(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto((built / "index.html").as_uri())
        assert page.locator(f"article img[src*='pair-{scheme}']").is_visible()
        assert not page.locator(f"article img[src*='pair-{other}']").is_visible()
        page.close()
