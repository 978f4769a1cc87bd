"""A running detection service over English-looking words, and a Chromium that looks at it."""

import asyncio
import random
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tests.browser.actions import sign_in
from tests.browser.played_model import playground  # noqa: F401
from tests.harness.certificates import Credential, credential
from tests.unit.detect_service.conftest import watermarked_text
from tests.unit.detect_service.served import detection_app
from tests.unit.detect_service.simulated_texts import written_by_vllm
from ttmark.detect_service.documents.backend import DetectionBackend, TokenizerSet
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
from ttmark.detect_service.features.manifests.manifest_examiner import ManifestExaminer
from ttmark.detect_service.features.public.public_allowance import PublicBudget
from ttmark.detect_service.features.public.tier import PUBLIC_PATH, PublicTier
from ttmark.gen_service.features.playground.router import playground_router
from ttmark.services.settings.store import open_store
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.auth import Guests
from ttmark.shared.keys.held_keys import UnlockedKey
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.foreign_profile import ForeignProfile
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.signed_files.signed_file import CaseKey
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES

SEED = 1
PARTNERS_KEY = 0xFEEDFACECAFEBEEF
SYLLABLES = [first + second for first in "bcdfglmnprst" for second in ("a", "e", "in", "or", "u")]
CHROMIUM_FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


def word_tokenizer() -> TextTokenizer:
    """One token for each of 600 words, which are written with a space before them."""
    words = [first + second for first in SYLLABLES for second in SYLLABLES[::6]]
    vocabulary = {"[UNK]": 0} | {"\u2581" + word: number + 1 for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    return TextTokenizer(tokenizer)


@dataclass(frozen=True)
class Site:
    """The service's address, its access tokens by what they allow, and texts."""

    url: str
    tokens: dict[str, str]
    tokenizer: TextTokenizer
    keys: dict[str, UnlockedKey]
    authority: Credential
    written: dict[tuple[str, int], str] = field(default_factory=dict)

    def marked(self, key_id: str, tokens: int) -> str:
        """A text whose pairs of words are drawn from a watermarked uniform distribution; made once."""
        if (key_id, tokens) not in self.written:
            key, words = self.keys[key_id], range(1, self.tokenizer.vocab_size)
            drawn = watermarked_text(
                self.tokenizer, key.profile.watermark(), key.primary.prf_key, tokens, ids=words
            )
            self.written[key_id, tokens] = drawn
        return self.written[key_id, tokens]

    def partners(self, tokens: int) -> str:
        """A text as vLLM writes it with the partner's key."""
        return written_by_vllm(self.tokenizer, PARTNERS_KEY, range(1, self.tokenizer.vocab_size), tokens)

    def human(self, tokens: int, seed: int = 1) -> str:
        """A text of no key."""
        generator = np.random.default_rng(seed)
        return self.tokenizer.decode(generator.integers(1, self.tokenizer.vocab_size, size=tokens).tolist())


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The service on a port of the loopback interface, until the tests are over."""
    folder = tmp_path_factory.mktemp("site")
    started: list[Site] = []
    ready, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(folder, started, ready, stop)), daemon=True)
    thread.start()
    assert ready.wait(60), "the service did not start"
    yield started[0]
    stop.set()
    thread.join(30)


async def _serve(folder: Path, started: list[Site], ready: threading.Event, stop: threading.Event) -> None:
    tokenizer = word_tokenizer()
    kek = KeyEncryptionKey(bytes(32))
    store = open_store(f"sqlite:///{folder / 'keys.db'}")
    ring, registry = KeyRing(store, kek), TokenRegistry(store, kek)
    profile = Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": tokenizer.fingerprint})
    with pytest.MonkeyPatch.context() as patch:
        # The same secrets in every run, so that no run meets a false alarm that another does not.
        patch.setattr("ttmark.shared.keys.key_codec.os.urandom", random.Random(SEED).randbytes)
        for key_id in ("press-room", "help-desk"):
            await ring.create(key_id, tenant="a", profile=profile)
        await ring.create("editors", tenant="b", profile=profile)
        parameters, secrets = FOREIGN_SCHEMES["vllm-gumbel"].split({"key": PARTNERS_KEY})
        partners = ForeignProfile(
            scheme="vllm-gumbel", parameters=parameters, tokenizer_fingerprint=tokenizer.fingerprint
        )
        await ring.create("partner", tenant="b", profile=partners, secrets=secrets)
    scopes = {
        "full": {Scope.DETECT, Scope.DETECT_EVIDENCE},
        "verdict": {Scope.DETECT},
        "public": {Scope.DETECT_PUBLIC},
        "generate": {Scope.GENERATE},
    }
    tokens = {
        name: (await registry.create(tenant="a", scopes=granted))[0] for name, granted in scopes.items()
    }
    tokens["second"], _ = await registry.create(tenant="a", scopes=scopes["full"])
    tokens["partners"], _ = await registry.create(tenant="b", scopes=scopes["full"])
    cache = KeyCache(ring)
    await cache.start()
    guests = Guests(PUBLIC_PATH, tokens["public"], bytes(16), _admit)
    workers = ExtractionWorkers()
    authority = credential()
    app = detection_app(
        DetectionBackend(cache, TokenizerSet([tokenizer]), max_document_tokens=30_000),
        AppOptions(authenticate=registry.authenticate, guests=guests),
        ready=lambda: {"keys": cache.ready},
        workers=workers,
        case_key=CaseKey.generate(),
        examiner=ManifestExaminer(workers, authority.root.decode()),
        public=PublicTier(1e-5, "https://example.org/tokens", PublicBudget.of(100_000, 0.1), True, None),
    )
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    app.include_router(playground_router(url))  # beside its console; tests answer for the generation service
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    keys = {key_id: await ring.open(key_id) for key_id in ("press-room", "help-desk", "editors")}
    started.append(Site(url, tokens, tokenizer, keys, authority))
    ready.set()
    await asyncio.to_thread(stop.wait)
    server.should_exit = True
    await serving
    await workers.close()
    await cache.stop()
    await store.close()


async def _admit(guest: str) -> None:
    """Any number of requests."""


# Not for the session: while Playwright runs, its event loop keeps the tests that follow from starting theirs.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The system's Chromium; `make test` installs it where it is missing."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.fail("the browser tests need chromium: run `deploy/system_packages.sh chromium`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser, site: Site) -> Iterator[Page]:
    """The console, freshly opened; anything that the browser complains about fails the test."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_default_timeout(20_000)
    expect.set_options(timeout=20_000)  # else 5 s, which a busy machine takes to read files
    page.goto(site.url)
    yield page
    context.close()
    # Chromium logs every answer of 400 and above; those are what some tests are about.
    assert [text for text in complaints if "Failed to load resource" not in text] == []
    assert [url for url in asked if not url.startswith((site.url, "blob:"))] == []


@pytest.fixture
def connected(page: Page, site: Site) -> Page:
    """The console after a token with all scopes of detection was entered."""
    sign_in(page, site.tokens["full"])
    page.get_by_text("Connected · 2 keys · with evidence").wait_for()
    return page
