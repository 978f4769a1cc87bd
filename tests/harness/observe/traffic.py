"""Traffic as a mixed crowd of clients makes it: completions, streams, detections, mistakes, a burst."""

import random
import threading
from collections.abc import Callable
from typing import Any, Self

import httpx

from tests.harness.forms import PATHS
from tests.harness.observe.services import Bed

PROMPTS = ("The command reads the file and", "A function that returns", "In the second step the user")
_PAUSE = 0.02


class Traffic:
    """Sends requests from a few threads until the block is left; counts answers by route and status."""

    def __init__(self, bed: Bed, *, seed: int = 0) -> None:
        self.answers: dict[str, int] = {}
        self._bed = bed
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._texts = ["A text that no model of ours has made, and that says little."]
        self._generation = self._client("gen", bed.setup.token)
        self._detection = self._client("detect", bed.setup.token)
        self._strangers = {name: self._client(name, "ttm_nobody_nothing") for name in ("gen", "detect")}
        roles: tuple[Callable[[], None], ...] = (
            self._complete, self._detect, self._detect, self._read_along, self._read_files, self._err,
            self._burst,
        )  # fmt: skip
        self._threads = [threading.Thread(target=self._repeat, args=(role,), daemon=True) for role in roles]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        for client in (self._generation, self._detection, *self._strangers.values()):
            client.close()

    def _client(self, name: str, token: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self._bed.url(name), headers=headers, timeout=120)

    def _repeat(self, role: Callable[[], None]) -> None:
        while not self._stop.is_set():
            self._attempt(role)
            self._stop.wait(_PAUSE)

    def _attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except httpx.HTTPError as error:
            self._count(type(error).__name__)

    def _count(self, name: str) -> None:
        with self._lock:
            self.answers[name] = self.answers.get(name, 0) + 1

    def _post(self, client: httpx.Client, path: str, body: dict[str, Any]) -> httpx.Response:
        response = client.post(path, json=body)
        self._count(f"{path} {response.status_code}")
        return response

    def _completion(self, **options: Any) -> dict[str, Any]:
        prompt = self._random.choice(PROMPTS)
        model = self._bed.setup.model_id
        return {"model": model, "prompt": prompt, "max_tokens": 160, "top_k": 50, **options}

    def _complete(self) -> None:
        answer = self._post(self._generation, "/v1/completions", self._completion(temperature=1.0))
        if answer.is_success:
            self._texts = [*self._texts[-20:], answer.json()["choices"][0]["text"]]
        body = self._completion(stream=True)
        with self._generation.stream("POST", "/v1/completions", json=body) as response:
            for _ in response.iter_lines():
                pass
        with self._generation.stream("POST", "/v1/completions", json=body) as response:
            next(response.iter_lines(), None)  # and goes away
        self._post(self._generation, "/v1/completions", self._completion(temperature=0.0, max_tokens=8))

    def _detect(self) -> None:
        ids = [[self._random.randrange(4000) for _ in range(300)] for _ in range(16)]
        for mode in ("", "/direct", "/direct", "/direct", "/aligned", "/localized"):
            documents: list[dict[str, Any]] = [{"token_ids": tokens} for tokens in ids]
            if mode in ("", "/direct"):
                documents.append({"text": self._random.choice(self._texts)})
            self._post(self._detection, f"/v1/detect{mode}", {"inputs": documents[-17:]})

    def _read_along(self) -> None:
        body = {"model": self._bed.setup.model_id, "texts": self._texts[-4:]}
        self._post(self._generation, "/v1/readings", body)

    def _read_files(self) -> None:
        page = f"<p>{self._random.choice(self._texts)}".encode()
        for path in PATHS:
            for name in ("a.html", "a.docx"):
                answer = self._detection.post(path, files={"file": (name, page)})
                self._count(f"{path} {answer.status_code}")

    def _err(self) -> None:
        for name, path in (("gen", "/v1/completions"), ("detect", "/v1/detect/direct")):
            client = self._generation if name == "gen" else self._detection
            self._post(self._strangers[name], path, {})
            self._post(client, path, {"inputs": 1})
            self._post(client, "/v1/nothing", {})

    def _burst(self) -> None:
        """More completions at once than the queue takes, so that some are turned away."""

        def ask() -> None:
            self._post(self._generation, "/v1/completions", self._completion())

        threads = [threading.Thread(target=self._attempt, args=(ask,)) for _ in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._stop.wait(2)
