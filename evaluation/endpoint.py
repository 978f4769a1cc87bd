"""An OpenAI-compatible endpoint that rewrites text; its answers are kept."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson

from ttmark.shared.outgoing import DEADLINE, Deadline, http_client
from ttmark.shared.whole_file import AS_UMASK_SAYS, write_whole

MAX_TOKENS = 256
IN_FLIGHT = 8
ATTEMPTS = 4
TIMEOUT_SECONDS = 120.0


class EndpointError(Exception):
    """The endpoint refused, or answered what no OpenAI-compatible endpoint does."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask.

    Attributes:
        url: up to and with `/v1`.
        body: further fields of every request.
    """

    url: str
    model: str
    api_key: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndpointClient:
    """Asks an endpoint, never twice the same.

    Attributes:
        cache: folder of the answers.
        plain_http: send the API key over plain http to a host outside one's own network, too.
        transport: replaces the network, for tests.
    """

    endpoint: Endpoint
    cache: Path
    plain_http: bool = False
    transport: httpx.AsyncBaseTransport | None = None

    def ask_all(self, prompts: Sequence[str], seeds: Sequence[int] | None = None) -> list[str]:
        """Answers in the order of the prompts.

        Args:
            seeds: one for each prompt, so that the same prompt may have several answers.

        Raises:
            EndpointError: an answer did not come.
        """
        return asyncio.run(self._ask_all([self._body(prompt) for prompt in prompts], seeds))

    async def _ask_all(self, bodies: Sequence[dict[str, Any]], seeds: Sequence[int] | None) -> list[str]:
        slots = asyncio.Semaphore(IN_FLIGHT)
        if seeds is not None:
            bodies = [body | {"seed": seed} for body, seed in zip(bodies, seeds, strict=True)]

        async def ask(body: dict[str, Any]) -> str:
            async with slots:
                return await self._ask(client, body)

        async with http_client(
            seconds=TIMEOUT_SECONDS, plain_http=self.plain_http, transport=self.transport
        ) as client:
            return list(await asyncio.gather(*map(ask, bodies)))

    async def _ask(self, client: httpx.AsyncClient, body: dict[str, Any]) -> str:
        digest = hashlib.sha256(orjson.dumps([self.endpoint.url, body])).hexdigest()
        path = self.cache / f"{digest}.json"
        if path.is_file():
            answer = orjson.loads(path.read_bytes())
        else:
            answer = await self._post(client, body)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, orjson.dumps(answer), mode=AS_UMASK_SAYS)
        return self._text(answer)

    def _body(self, prompt: str) -> dict[str, Any]:
        message = {"role": "user", "content": prompt}
        body = {"model": self.endpoint.model, "max_tokens": MAX_TOKENS, **self.endpoint.body}
        return body | {"messages": [message]}

    async def _post(self, client: httpx.AsyncClient, body: dict[str, Any]) -> Any:
        headers = {"Authorization": f"Bearer {self.endpoint.api_key}"} if self.endpoint.api_key else {}
        within = {DEADLINE: Deadline(TIMEOUT_SECONDS)}
        for attempt in range(1, ATTEMPTS + 1):
            try:
                response = await client.post(
                    f"{self.endpoint.url}/chat/completions", json=body, headers=headers, extensions=within
                )
            except httpx.HTTPError as error:
                raise EndpointError(f"{self.endpoint.url}: {str(error) or type(error).__name__}") from error
            if response.status_code not in (429, 503) or attempt == ATTEMPTS:
                break
            told = response.headers.get("retry-after", "")[:9]
            await asyncio.sleep(min(int(told) if told.isdecimal() else attempt, TIMEOUT_SECONDS))
        if response.status_code != 200:
            raise EndpointError(f"{self.endpoint.url}: {response.status_code} {response.text[:200]}")
        try:
            return orjson.loads(response.content)
        except orjson.JSONDecodeError as error:
            raise EndpointError(f"{self.endpoint.url}: an answer that is no JSON") from error

    def _text(self, answer: Any) -> str:
        try:
            return str(answer["choices"][0]["message"]["content"] or "")
        except (KeyError, IndexError, TypeError) as error:
            raise EndpointError(f"{self.endpoint.url}: an answer without text") from error
