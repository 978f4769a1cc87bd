"""The console signs people in at a certified OpenID provider, and its tokens open what the operator says."""

import asyncio
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import httpx
import pytest
import uvicorn
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from tests.browser.conftest import word_tokenizer
from tests.harness.observe.services import free_port
from tests.unit.detect_service.served import detection_app
from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.detect_service.features.oidc.oidc import OidcRules, OidcTokens
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.app import AppOptions
from ttmark.shared.pages import SignIn
from ttmark.shared.vault.stores.key_store_errors import InvalidToken

PACKAGE = "oidc-provider@9.13.3"
AUDIENCE = "https://detect.example.org"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(shutil.which, ("node", "npm"))), reason="needs node and npm"),
]


@dataclass(frozen=True)
class Place:
    """Where the console and its provider are."""

    console: str
    issuer: str


@pytest.fixture(scope="module")
def place(pytestconfig: pytest.Config) -> Iterator[Place]:
    """A provider, and a detection service that believes it."""
    modules = pytestconfig.cache.mkdir("ttmark-oidc-provider")
    if not (modules / "node_modules").is_dir():
        made = subprocess.run(["npm", "install", "--silent", "--prefix", str(modules), PACKAGE], check=False)
        if made.returncode:
            pytest.skip(f"{PACKAGE} cannot be had")
    console, provider = free_port(), free_port()
    where = Place(f"http://127.0.0.1:{console}", f"http://127.0.0.1:{provider}")
    script = Path(__file__).with_name("oidc_provider.mjs")
    command = ["node", str(script), str(provider), where.console]
    rules = OidcRules(where.issuer, AUDIENCE, "acme", frozenset({Scope.DETECT}), "moderators")

    async def no_tokens_of_ours(_: str) -> Principal:
        raise InvalidToken

    asks = httpx.AsyncClient()
    app = detection_app(
        DetectionBackend(FixedKeys([]), TokenizerSet([word_tokenizer()]), 30_000),
        AppOptions(authenticate=OidcTokens(rules, asks).beside(no_tokens_of_ours)),
        sign_in=SignIn(where.issuer, "console", AUDIENCE),
    )
    server = uvicorn.Server(uvicorn.Config(app, port=console, log_config=None, lifespan="off"))

    async def serve() -> None:
        async with asks:
            await server.serve()

    thread = Thread(target=asyncio.run, args=[serve()])
    with subprocess.Popen(command, cwd=modules, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout.readline().strip() == "ready"
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield where
        server.should_exit = True
        thread.join()
        running.terminate()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A browser that nobody has used."""
    context = chromium.new_context(reduced_motion="reduce")
    yield context.new_page()
    context.close()


def sign_in(page: Page, place: Place, name: str) -> str:
    """Through the provider's pages; the token that the console has then."""
    page.goto(place.console)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{place.issuer}/**")
    page.locator("input[name=login]").fill(name)
    page.locator("input[name=password]").fill("any")
    page.locator("button[type=submit]").click()
    page.locator("button[type=submit]").click()  # consent
    page.wait_for_url(f"{place.console}/")
    expect(page.locator("#connection")).to_contain_text("Connected")
    token: str = page.evaluate("sessionStorage.getItem('ttmark-token')")
    return token


@pytest.mark.parametrize(("name", "sees"), [("ada", True), ("bob", False)])
def test_a_person_signs_in_and_asks(page: Page, place: Place, name: str, sees: bool) -> None:
    problems: list[str] = []

    def heard(said: ConsoleMessage) -> None:
        # The provider's own pages ask for fonts of elsewhere.
        if said.type == "error" and said.location["url"].startswith(place.console):
            problems.append(said.text)

    page.on("console", heard)
    token = sign_in(page, place, name)
    assert not problems
    asked = httpx.get(f"{place.console}/v1/keys", headers={"Authorization": f"Bearer {token}"})
    assert ("detect:evidence" in asked.json()["scopes"]) is sees
    forged = f"{token[:-12]}{'A' * 12}"
    refused = httpx.get(f"{place.console}/v1/keys", headers={"Authorization": f"Bearer {forged}"})
    assert refused.status_code == 401
    page.reload()
    expect(page.locator("#connection")).to_contain_text("Connected")


def test_who_declines_is_told(page: Page, place: Place) -> None:
    page.goto(place.console)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{place.issuer}/**")
    page.get_by_text("Cancel").click()
    page.wait_for_url(f"{place.console}/")
    expect(page.locator("#access-problem")).not_to_be_empty()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
