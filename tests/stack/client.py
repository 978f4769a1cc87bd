"""Requests to the stack as clients send them, and what each answer has to show."""

import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.stack.podman import StackFailed

PROMPT = "The command reads the file and"


class Client:
    """Speaks with both services under one token; containers that start again have another address."""

    def __init__(self, gen: str, detect: Callable[[], str], token: str, model: str) -> None:
        self.gen, self.detect, self.token, self.model = gen, detect, token, model
        self._http = httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=120)

    def complete(self, tokens: int = 200) -> dict[str, Any]:
        """A completion, which has to be marked; it does not end early, as short ones have no mark."""
        body = {"model": self.model, "prompt": PROMPT, "max_tokens": tokens, "top_k": 50, "temperature": 1.0}
        return self._marked("completions", {**body, "ignore_eos": True})

    def stream(self, tokens: int) -> None:
        """A completion as a stream, which has to come to its end."""
        body = {"model": self.model, "prompt": PROMPT, "max_tokens": tokens, "top_k": 50, "stream": True}
        answer = self._http.post(f"{self.gen}/v1/completions", json=body)
        _check(answer)
        if '"error":{' in answer.text or not answer.text.rstrip().endswith("[DONE]"):
            raise StackFailed(f"a stream did not come to its end: {answer.text[-200:]}")

    def chat(self) -> dict[str, Any]:
        """A chat; the demo model has no template for one, so it is asked for a completion."""
        if self.model == "demo":
            return self.complete()
        body = {"model": self.model, "messages": [{"role": "user", "content": "Tell a long story."}]}
        return self._marked("chat/completions", {**body, "max_tokens": 200})

    def _marked(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._http.post(f"{self.gen}/v1/{path}", json=body)
        _check(answer)
        document: dict[str, Any] = answer.json()
        if document["watermark"]["status"] == "unwatermarked":
            raise StackFailed(f"unmarked: {document['watermark']}")
        return document

    def verdict(self, text: str) -> str:
        body = {"fpr": 1e-3, "inputs": [{"text": text}]}
        answer = self._http.post(f"{self.detect()}/v1/detect", json=body)
        _check(answer)
        return str(answer.json()["results"][0]["verdict"])

    def submit(self, texts: list[str]) -> str:
        """The id of a job about texts."""
        inputs = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
        answer = self._http.post(f"{self.detect()}/v1/detect/jobs", json={"fpr": 1e-3, "inputs": inputs})
        _check(answer)
        return str(answer.json()["id"])

    def finished(self, job: str, seconds: float = 120) -> int:
        """How many documents of a job were answered; waits for its end."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                status = self._http.get(f"{self.detect()}/v1/detect/jobs/{job}").json()
            except httpx.HTTPError:
                status = {}
            if status.get("status") == "finished":
                return int(status["answered"])
            time.sleep(1)
        raise StackFailed(f"a job of {seconds} s did not end")


def _check(answer: httpx.Response) -> None:
    """Raises StackFailed with the words of a refusal, which say more than its status."""
    if answer.is_error:
        raise StackFailed(f"{answer.status_code} of {answer.url.path}: {answer.text[:300]}")


def text_of(document: dict[str, Any]) -> str:
    choice = document["choices"][0]
    return str(choice.get("text") or choice["message"]["content"])
