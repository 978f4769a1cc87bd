"""Rephrasing and back-translation of a share of a text's sentences through an endpoint (paper, Table 3)."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import numpy as np

from evaluation.edits.endpoint import EndpointClient
from evaluation.edits.offline import chosen_positions, sentences_of
from evaluation.seeds import sampling_seed

PROMPTS = {
    "paraphrase": ("Say this in other words, and answer with nothing else:\n\n{text}",),
    "back-translation": (
        "Translate this into French, and answer with nothing else:\n\n{text}",
        "Translate this into English, and answer with nothing else:\n\n{text}",
    ),
}
"""Prompts by edit; the answer to one is the text of the next."""

OpenClient = Callable[[], AbstractAsyncContextManager[EndpointClient]]
"""Opens connections in the event loop that uses them."""


class EndpointEdit:
    """An edit of all texts of a cell, as `measure_edit` takes it."""

    def __init__(self, name: str, share: float, seed: int, open_client: OpenClient) -> None:
        self._name = name
        self._share = share
        self._seed = seed
        self._open_client = open_client

    def __call__(self, cell: str, texts: list[str]) -> list[str]:
        """The texts with `share` of their sentences through the endpoint."""
        generator = np.random.default_rng(sampling_seed(self._seed, "edit", self._name, cell))
        sentences = [sentences_of(text) for text in texts]
        chosen = [chosen_positions(len(parts), self._share, generator) for parts in sentences]
        asked = [(row, place) for row, places in enumerate(chosen) for place in places]
        answers = asyncio.run(self._edit([sentences[row][place] for row, place in asked]))
        for (row, place), answer in zip(asked, answers, strict=True):
            old = sentences[row][place]
            space = old[: len(old) - len(old.lstrip())]
            sentences[row][place] = space + answer.strip()
        return ["".join(parts) for parts in sentences]

    async def _edit(self, passages: list[str]) -> list[str]:
        async with self._open_client() as client:
            for template in PROMPTS[self._name]:
                passages = await client.ask_all([template.format(text=text.strip()) for text in passages])
        return passages
