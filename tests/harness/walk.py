"""`python -m tests.harness.walk [chat|detect|detect-text] [--list]`: how much code a request crosses.

Both services run in this process. Counted is what a warm one does until the first pair of a streamed chat, or
a verdict on 400 tokens with 16 keys, goes out: files, their lines, lines of the functions that are called,
files of optional features, and changes. A *change* is a call into another file of ours than the last, in the
same thread. The least of several counts.
"""

import argparse
import asyncio
import os
import re
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from tests.harness.features import feature_of
from tests.harness.observe.services import variables
from ttmark.services.composition.detection_service import build_detection_service
from ttmark.services.composition.generation_service import build_generation_service
from ttmark.services.local.provision import TENANT, LocalSetup, provision
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.shared.keys.keyring import KeyRing

ROOT = Path(__file__).parents[2]
FOLDERS = tuple(
    f"{ROOT / 'ttmark' / name}/" for name in ("shared", "gen_service", "detect_service", "services")
)
DOCUMENT_TOKENS, KEYS = 400, 16
FACTORS = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43)
"""Of the first question, which is not counted, and of those that are."""


class Walk:
    """Counts calls into files of ours while it is on, in every thread."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.functions: set[CodeType] = set()
        self.changes = 0
        self.on = False
        self._last: dict[int, str] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not self.on:
            return
        file = frame.f_code.co_filename
        if not file.startswith(FOLDERS):
            return
        thread = threading.get_ident()
        self.calls[file] += 1
        self.functions.add(frame.f_code)
        self.changes += self._last.get(thread) != file
        self._last[thread] = file

    def start(self) -> None:
        self.calls.clear()
        self.functions.clear()
        self._last.clear()
        self.changes, self.on = 0, True


def chat(setup: LocalSetup) -> dict[str, Any]:
    messages = [{"role": "user", "content": "What is a watermark?"}]
    return {"model": setup.model_id, "messages": messages, "max_tokens": 8, "stream": True}


def detect(factor: int) -> dict[str, Any]:
    """A document of token ids, to be read with every key of the tenant."""
    ids = [(factor * at * at + at) % 500 for at in range(DOCUMENT_TOKENS)]
    return {"inputs": [{"token_ids": ids}], "fpr": 1e-5}


def detect_text(factor: int) -> dict[str, Any]:
    """A text as somebody pastes it, of as many tokens or fewer."""
    words = [
        "the",
        "café",
        "–",
        "“naïve”",
        "words,",
        "of",
        "somebody's",
        "own;",
        "written",
        "and",
        "read",
        "again",
    ]
    text = " ".join(words[(factor * at * at + at) % len(words)] for at in range(DOCUMENT_TOKENS // 4))
    return {"inputs": [{"text": text}], "fpr": 1e-5}


def lines_of(functions: Iterable[CodeType]) -> set[tuple[str, int]]:
    """The lines of functions from `def` or a decorator to the last, those of inner functions once."""
    return {
        (code.co_filename, line)
        for code in functions
        for line in range(code.co_firstlineno, max(line or 0 for *_, line in code.co_lines()) + 1)
    }


DOCUMENTS = {"detect": detect, "detect-text": detect_text}


class Counted:
    """An application whose answers are walked until their first words are out."""

    def __init__(self, app: FastAPI, walk: Walk, words: re.Pattern[bytes]) -> None:
        self._app, self._walk, self._words = app, walk, words
        self.counts = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watched(message: Message) -> None:
            if self._words.search(message.get("body", b"")):
                self._walk.on = False
            await send(message)

        if self.counts:
            self._walk.start()
        await self._app(scope, receive, watched)


async def _ask(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> None:
    answer = await client.post(path, json=body)
    if answer.is_error:
        raise SystemExit(answer.text)


async def _more_keys(setup: LocalSetup) -> None:
    settings = KeyStoreSettings()
    store = settings.open_store()
    ring = KeyRing(store, settings.load_kek(), ledger=settings.open_ledger())
    profile = (await ring.open(setup.key_id)).profile
    for number in range(KEYS - 2):
        await ring.create(f"walk-{number}", tenant=TENANT, profile=profile)
    await store.close()


async def _walk(name: str, setup: LocalSetup, walk: Walk) -> None:
    if name == "chat":
        app, path = build_generation_service(GenerationSettings()), "/v1/chat/completions"
        bodies, words = [chat(setup) for _ in FACTORS], re.compile(rb'"content":"[^"]')
    else:
        app, path = build_detection_service(DetectionSettings()), "/v1/detect"
        bodies, words = [DOCUMENTS[name](factor) for factor in FACTORS], re.compile(rb'"verdict"')
    counted = Counted(app, walk, words)
    headers = {"Authorization": f"Bearer {setup.token}"}
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(counted), base_url="http://walk", headers=headers, timeout=120
        ) as client,
    ):
        while (await client.get("/readyz")).status_code != httpx.codes.OK:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await _ask(client, path, bodies[0])
        counted.counts = True
        found = []
        for body in bodies[1:]:
            await asyncio.sleep(0.3)  # what the answer before left to do is not of this one
            await _ask(client, path, body)
            found.append((Counter(walk.calls), walk.changes, set(walk.functions)))
    walk.calls, walk.changes, walk.functions = min(found, key=lambda one: (len(one[0]), one[1]))
    if walk.on:
        raise SystemExit("the answer had no words")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("walks", nargs="*", default=["chat", *DOCUMENTS])
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    for name in asked.walks:
        with tempfile.TemporaryDirectory() as state:
            setup = provision("demo", None, Path(state))
            os.environ |= variables(setup)
            asyncio.run(_more_keys(setup))
            walk = Walk()
            threading.setprofile(walk)
            sys.setprofile(walk)
            asyncio.run(_walk(name, setup, walk))
            sys.setprofile(None)
            threading.setprofile(None)
        paths = {
            str(Path(file).relative_to(ROOT / "ttmark")): calls for file, calls in walk.calls.most_common()
        }
        lines = sum((ROOT / path).read_text().count("\n") for path in paths)
        optional = sum(feature_of(path) is not None for path in paths)
        functions = len(lines_of(walk.functions))
        print(
            f"{name}: {len(paths)} files, {lines} lines, {functions} of functions called, "
            f"{optional} modules of optional features, {walk.changes} changes of file"
        )
        if asked.list:
            for path, calls in paths.items():
                print(f"  {calls:5} {path} {feature_of(path) or ''}".rstrip())


if __name__ == "__main__":
    main()
