"""Two tenants ask; a third, the reader, the OpenID provider and a webhook's receiver fail in turn."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.harness.observe.services import Bed
from tests.harness.played_server import played
from tests.harness.waiting import eventually
from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.demo_model import HUMAN_TEXTS_PATH
from ttmark.services.local.provision import TENANT
from ttmark.services.settings.store import open_store
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.vault.kek import KeyEncryptionKey

pytestmark = pytest.mark.slow

MODEL = os.environ.get("TTMARK_TEST_MODEL", "demo")
QUESTIONS, ROUNDS, MOST_GROWTH, BACK_SECONDS = 2_000, 6, 3.0, 10.0
LENGTHS = (16, 24, 32, 48, 64, 96)
AUDIENCE, KEY = "https://detect.example.org", RSAKey.generate_key(2048, {"kid": "a", "use": "sig"})
UNKNOWN_KEY = "eyJhbGciOiJSUzI1NiIsImtpZCI6Inh4In0.e30.AAAA"
TOKENS = {
    "neighbour": {Scope.DETECT, Scope.DETECT_EVIDENCE, Scope.GENERATE},
    "noisy": {Scope.DETECT, Scope.DETECT_EVIDENCE},
    "reads": {Scope.READ},
}
PEOPLE = " ".join(read_human_texts(HUMAN_TEXTS_PATH)).split()


class Parties:
    """The reader, the provider and the receiver, who say nothing while they are among `fail`."""

    def __init__(self) -> None:
        self.fail: set[str] = set()
        self.called: list[str] = []
        self.reader_url = self.reader_token = self.issuer = ""
        self.http = httpx.Client(timeout=60, trust_env=False)

    def reader(self, path: str, body: bytes) -> tuple[int, bytes]:
        self._hang("reader")
        headers = {"Authorization": f"Bearer {self.reader_token}", "Content-Type": "application/json"}
        answer = self.http.post(self.reader_url + path, content=body, headers=headers)
        return answer.status_code, answer.content

    def provider(self, path: str, _: bytes) -> tuple[int, bytes]:
        self._hang("provider")
        about = {"issuer": self.issuer, "jwks_uri": self.issuer + "/keys"}
        keys = {"keys": [KEY.as_dict(private=False)]}
        return 200, json.dumps(about if "openid" in path else keys).encode()

    def receiver(self, path: str, _: bytes) -> tuple[int, bytes]:
        if path == "/slow":
            self._hang("receiver")
        self.called.append(path)
        return 200, b""

    def _hang(self, name: str) -> None:
        while name in self.fail:
            time.sleep(0.05)


class Told(NamedTuple):
    """What somebody was told of a text, and in how many seconds."""

    tenant: str
    text: int
    verdict: str
    reader: str
    seconds: float


class Tenant:
    """Asks one question after the other."""

    def __init__(self, name: str, url: str, token: str, texts: list[str]) -> None:
        self.name = name
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=120, trust_env=False)
        self._texts = texts

    def ask(self, number: int) -> Told:
        text, began = number % len(self._texts), time.perf_counter()
        answer = self.http.post("/v1/detect", json={"inputs": [{"text": self._texts[text]}], "fpr": 1e-3})
        taken = time.perf_counter() - began
        (result,) = answer.raise_for_status().json()["results"]
        return Told(self.name, text, result["verdict"], result["reader"], taken)

    def make(self, webhook: str) -> None:
        """A job whose end a receiver is told; one more than there may be is refused."""
        body = {"inputs": [{"text": self._texts[0]}], "webhook": webhook}
        assert self.http.post("/v1/detect/jobs", json=body).status_code in (202, 429)

    def flood(self, stop: threading.Event) -> None:
        """Sends the dearest readings that there are."""
        random = np.random.default_rng()
        while not stop.is_set():
            texts = [" ".join(random.choice(PEOPLE[:50], 700)) for _ in range(16)]
            self.http.post("/v1/detect", json={"inputs": [{"text": t} for t in texts], "reader": "always"})


@contextmanager
def beside(work: Callable[[threading.Event], None], threads: int) -> Iterator[None]:
    """The work goes on in so many threads while the block runs."""
    stop = threading.Event()
    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(work, stop) for _ in range(threads)]
        try:
            yield
        finally:
            stop.set()
    for one in running:
        one.result()


async def provision(bed: Bed) -> dict[str, str]:
    """A key and a token for each tenant beside the one that there is."""
    kek = KeyEncryptionKey.from_text(bed.setup.kek_file.read_text().strip())
    store = open_store(bed.setup.store_url)
    fingerprint = TextTokenizer.load(bed.setup.tokenizer_folder).fingerprint
    profile = Profile.model_validate({"scheme": "gumbel", "tokenizer_fingerprint": fingerprint})
    tokens = {}
    for name, scopes in TOKENS.items():
        await KeyRing(store, kek).create(name, tenant=name, profile=profile)
        tokens[name], _ = await TokenRegistry(store, kek).create(tenant=name, scopes=scopes)
    await store.close()
    return tokens


def texts_for(bed: Bed, token: str, count: int) -> list[str]:
    """Marked texts of the token's tenant, some found with a reader alone, and texts by people."""
    texts, headers = [], {"Authorization": f"Bearer {token}"}
    for number, length in zip(range(count), cycle(LENGTHS), strict=False):
        prompt = " ".join(PEOPLE[number * 9 : number * 9 + 9])
        body = {"model": bed.setup.model_id, "prompt": prompt, "max_tokens": length, "temperature": 0.8}
        answer = httpx.post(f"{bed.url('gen')}/v1/completions", json=body, headers=headers, timeout=120)
        texts += [answer.json()["choices"][0]["text"], " ".join(PEOPLE[number * 50 : number * 50 + length])]
    return texts


def signed_in(issuer: str) -> str:
    now = int(time.time())
    claims = {"iss": issuer, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 3600}
    return jwt.encode({"alg": "RS256", "kid": "a"}, claims, KEY)


def p99(told: list[Told]) -> float:
    return float(np.quantile([one.seconds for one in told], 0.99))


def test_nobody_elses_failure_is_yours(
    tmp_path: Path, record_result: Callable[[str, str, str], None]
) -> None:
    parties, names = Parties(), ("reader", "provider", "receiver")
    with ExitStack() as stack:
        urls = {name: stack.enter_context(played(getattr(parties, name))) for name in names}
        stack.callback(parties.fail.clear)
        parties.issuer = urls["provider"]
        settings = {
            "TTMARK_READER_URL": urls["reader"],
            "TTMARK_READER_MODEL": MODEL,
            "TTMARK_READER_TOKEN": "played",
            "TTMARK_OIDC_ISSUER": parties.issuer,
            "TTMARK_OIDC_AUDIENCE": AUDIENCE,
            "TTMARK_OIDC_TENANT": TENANT,
            "TTMARK_OIDC_SCOPES": "detect,detect:evidence",
            "TTMARK_WEBHOOK_HOSTS": urls["receiver"].removeprefix("http://"),
            "TTMARK_WEBHOOK_SECRET": "whsec_" + "A" * 32,
            "OMP_NUM_THREADS": "1",
        }
        bed = stack.enter_context(Bed(tmp_path, model=MODEL, settings=settings))
        bed.stop("canary")
        tokens, at = asyncio.run(provision(bed)), bed.url("detect")
        parties.reader_url, parties.reader_token = bed.url("gen"), tokens["reads"]
        local = bed.setup.token_file.read_text().strip()
        honest = [
            Tenant("local", at, signed_in(parties.issuer), texts_for(bed, local, 25)),
            Tenant("neighbour", at, tokens["neighbour"], texts_for(bed, tokens["neighbour"], 25)),
        ]
        noisy = Tenant("noisy", at, tokens["noisy"], PEOPLE[:1])
        for http in (parties.http, noisy.http, *(one.http for one in honest)):
            stack.callback(http.close)

        def asked(count: int = QUESTIONS // ROUNDS // len(honest)) -> list[Told]:
            with ThreadPoolExecutor(len(honest)) as pool:
                of_each = pool.map(lambda tenant: [tenant.ask(number) for number in range(count)], honest)
                return [one for told in of_each for one in told]

        asked(50)
        quiet = asked()
        verdicts = {(one.tenant, one.text): one.verdict for one in quiet}
        rounds = {}
        with beside(noisy.flood, 4):
            rounds["a tenant"] = asked()
        parties.fail.add("reader")
        rounds["the reader"] = asked()
        parties.fail.clear()
        time.sleep(BACK_SECONDS)
        rounds["the reader, back"] = asked()
        parties.fail.add("provider")

        def strange(stop: threading.Event) -> None:
            while not stop.wait(0.2):
                httpx.get(f"{at}/v1/keys", headers={"Authorization": f"Bearer {UNKNOWN_KEY}"}, timeout=60)

        with beside(strange, 2):
            rounds["the provider"] = asked()
        parties.fail.clear()
        parties.fail.add("receiver")
        for _ in range(40):
            noisy.make(f"{urls['receiver']}/slow")
        honest[1].make(f"{urls['receiver']}/good")
        rounds["a receiver"] = asked()
        told_after = eventually(lambda: "/good" in parties.called)
        parties.fail.clear()
    idle = p99(quiet)
    other = {
        name: [one for one in told if one.verdict != verdicts[one.tenant, one.text] and one.reader != "down"]
        for name, told in rounds.items()
    }
    down = {name: sum(one.reader == "down" for one in told) for name, told in rounds.items()}
    growth = {name: p99(told) / idle for name, told in rounds.items()}
    said = "; ".join(f"{name}: {growth[name]:.1f} x, {down[name]} down" for name in rounds)
    whole = p99([one for told in rounds.values() for one in told]) / idle
    said = f"idle {idle * 1e3:.0f} ms; all {whole:.1f} x; {said}; told after {told_after:.1f} s"
    record_result("parties that fail", f"others' p99 at most {MOST_GROWTH:g} x idle, same verdicts", said)
    assert not any(other.values()), other
    assert not any(count for name, count in down.items() if name not in ("a tenant", "the reader")), said
    # Whose text is with the reader when it falls silent waits until a try says so: a few of each thousand.
    assert whole <= MOST_GROWTH, said
    print(said)
