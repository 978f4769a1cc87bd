"""Completions by a transformers model as it is, through its own forward pass and cache."""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.gen_service.decoding.decoder import Decoder
from ttmark.gen_service.decoding.request import Delta, GenerationRequest, SequenceFailed
from ttmark.gen_service.decoding.sequence import Sequence as Completion
from ttmark.gen_service.decoding.tandem_block import TandemBlock
from ttmark.shared.tokenization import TextTokenizer

BRANCH_BUDGET = 512
"""Candidates of a block level that are probed together, as in the engine."""
AT_ONCE = 32
"""Completions that are written together."""


class InTransformers:
    """Writes marked completions with a model of transformers; several advance a block at a time together.

    The cache may hold gaps, which a mask hides: attention sees positions, never columns. So the model needs
    full attention in every layer, and a kind of it that takes a mask of four dimensions (`sdpa`, `eager`).
    """

    def __init__(self, model: Any, tokenizer: TextTokenizer, eos_token_ids: Sequence[int]) -> None:
        """Raises ValueError for a model that attends in another way."""
        text = model.config.get_text_config()
        kind = getattr(text, "_attn_implementation", None)
        sliding = set(getattr(text, "layer_types", None) or ()) - {"full_attention"}
        if model.config.is_encoder_decoder or sliding or kind not in ("sdpa", "eager"):
            raise ValueError(
                "tandem decoding in transformers needs a causal model with full attention in every layer and "
                f"attn_implementation sdpa or eager, not {kind}{', ' if sliding else ''}{', '.join(sliding)}"
            )
        self._model = model
        self._tokenizer = tokenizer
        self._ends = tuple(eos_token_ids)
        self._decoder = Decoder(BRANCH_BUDGET)

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Delta]]:
        """The pieces of all completions, each with the number of its request.

        Raises:
            SequenceFailed: one could not be written.
        """
        for first in range(0, len(requests), AT_ONCE):
            for number, delta in self._together(requests[first : first + AT_ONCE]):
                yield first + number, delta

    def _together(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Delta]]:
        rows = [Completion(request, self._tokenizer, self._ends) for request in requests]
        numbers = {row: number for number, row in enumerate(rows)}
        batch = _Batch(self._model, rows)
        while batch.rows:
            waiting = batch.append()
            while waiting:
                for completion, outcome in self._decoder.decide(waiting).items():
                    if isinstance(outcome, SequenceFailed):
                        raise outcome
                    yield numbers[completion], outcome
                probing = [row for row in batch.rows if isinstance(row.block, TandemBlock)]
                waiting = batch.probe(probing) if probing else {}
            batch.drop_finished()


class _Batch:
    """Completions that are written together, and their cache."""

    def __init__(self, model: Any, rows: list[Completion]) -> None:
        from transformers import DynamicCache  # loaded by whoever has such a model, and for the others not

        self._model = model
        self._device = next(model.parameters()).device
        self._cache = DynamicCache(config=model.config)
        # Renamed in transformers 5.24. A model takes the other name, too, and ignores it.
        named = "cache" in inspect.signature(model.forward).parameters
        self._cache_name = "cache" if named else "past_key_values"
        self._seen = np.zeros((len(rows), 0), dtype=np.bool_)  # [rows, columns] that hold a token of the row
        self._cached = [0] * len(rows)
        self.rows = rows

    @torch.inference_mode()
    def append(self) -> dict[Completion, torch.Tensor]:
        """Caches what was written; the logits [1, vocab] after each completion."""
        new = [row.tokens[cached:] for row, cached in zip(self.rows, self._cached, strict=True)]
        width = max(map(len, new))
        tokens = np.zeros((len(new), width), dtype=np.int64)
        positions = np.zeros_like(tokens)
        filled = np.zeros(tokens.shape, dtype=np.bool_)
        for number, own in enumerate(new):  # to the right: the last column is everybody's last token
            tokens[number, width - len(own) :] = own
            positions[number, width - len(own) :] = np.arange(len(own)) + self._cached[number]
            filled[number, width - len(own) :] = True
        own_mask = np.tril(np.ones((width, width), dtype=np.bool_)) & filled[:, None, :]
        logits = self._forward(tokens, positions, own_mask, 1)
        self._seen = np.concatenate([self._seen, filled], axis=1)
        self._cached = [len(row.tokens) for row in self.rows]
        return {row: logits[number, -1:] for number, row in enumerate(self.rows)}

    @torch.inference_mode()
    def probe(self, probing: Sequence[Completion]) -> dict[Completion, torch.Tensor]:
        """Logits [branches, vocab] after the branches of the blocks in the making; nothing of it is kept."""
        paths = {row: row.block.builder.frontier for row in probing if isinstance(row.block, TandemBlock)}
        width = max(own.size for own in paths.values())
        tokens = np.zeros((len(self.rows), width), dtype=np.int64)
        positions = np.zeros_like(tokens)
        mask = np.zeros((len(self.rows), width, width), dtype=np.bool_)
        for number, row in enumerate(self.rows):
            if (own := paths.get(row)) is None:
                continue
            branches, length = own.shape
            tokens[number, : own.size] = own.reshape(-1)
            positions[number, : own.size] = np.tile(np.arange(length), branches) + self._cached[number]
            mask[number, : own.size, : own.size] = np.kron(
                np.eye(branches, dtype=np.int64), np.tril(np.ones((length, length), dtype=np.int64))
            )
        logits = self._forward(tokens, positions, mask, 0)
        self._cache.crop(-width)
        return {
            row: logits[self.rows.index(row), own.shape[1] - 1 : own.size : own.shape[1]]
            for row, own in paths.items()
        }

    def drop_finished(self) -> None:
        """Goes on with those that are not finished."""
        left = [number for number, row in enumerate(self.rows) if row.finish_reason is None]
        if 0 < len(left) < len(self.rows):
            self._cache.batch_select_indices(torch.tensor(left, device=self._device))
        self.rows = [self.rows[number] for number in left]
        self._cached = [self._cached[number] for number in left]
        self._seen = self._seen[left]

    def _forward(
        self, tokens: NDArray[np.int64], positions: NDArray[np.int64], own: NDArray[np.bool_], keep: int
    ) -> torch.Tensor:
        """Logits [rows, width or keep, vocab].

        Args:
            own: what new tokens see of each other [rows, width, width].
        """
        width = tokens.shape[1]
        own = own | np.eye(width, dtype=np.bool_)  # what fills a row up sees itself, for softmax's sake
        before = np.broadcast_to(self._seen[:, None, :], (len(tokens), width, self._seen.shape[1]))
        sees = torch.from_numpy(np.concatenate([before, own], axis=2)).to(self._device)[:, None]
        hidden = torch.zeros(sees.shape, dtype=self._model.dtype, device=self._device)
        hidden.masked_fill_(~sees, torch.finfo(self._model.dtype).min)
        out = self._model(
            input_ids=torch.from_numpy(tokens).to(self._device),
            position_ids=torch.from_numpy(positions).to(self._device),
            attention_mask=hidden,
            use_cache=True,
            logits_to_keep=keep,
            **{self._cache_name: self._cache},
        )
        logits: torch.Tensor = out.logits
        return logits
