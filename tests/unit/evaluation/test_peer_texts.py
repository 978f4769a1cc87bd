"""Texts of other systems: ours are theirs, only quicker, and their readers find them."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import SynthIDTextWatermarkLogitsProcessor

from ttmark.evaluation.experiment_cells import Cell, SamplingSetting
from ttmark.evaluation.peers.source import PeerSource, padded
from ttmark.evaluation.peers.synthid import kept_synthid
from ttmark.evaluation.peers.systems import LAYERS, NGRAM, SYSTEMS, words
from ttmark.evaluation.peers.vllm_gumbel import VllmRow
from ttmark.evaluation.run_folder import Completion
from ttmark.evaluation.text_sources import EngineSource
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH, PROMPTS_PATH
from ttmark.gen_service.engine import EngineSettings

SETTING = SamplingSetting(50, 0.95, 1.0)
VOCABULARY, KEPT = 300, 7


def test_synthid_over_the_kept_tokens_is_the_original_over_all() -> None:
    layer_keys = words(b"key", LAYERS)
    kept = kept_synthid(layer_keys, NGRAM)
    original = SynthIDTextWatermarkLogitsProcessor(
        NGRAM, list(layer_keys), 1 << 16, 0, 1024, torch.device("cpu")
    )
    torch.manual_seed(0)
    tokens = torch.zeros((1, 1), dtype=torch.int64)
    changed = []
    for step in range(40):
        scores = 2 * torch.randn(1, VOCABULARY)
        scores[scores < scores.topk(KEPT).values[:, -1:]] = -torch.inf
        ours, theirs = kept(tokens, scores), original(tokens, scores)
        torch.testing.assert_close(ours.softmax(-1), theirs.softmax(-1))
        changed.append(not torch.equal(ours, scores))
        # A loop, so that contexts come again and are left without the mark.
        tokens = torch.cat([tokens, torch.tensor([[1 + step % 10]])], dim=1)
    assert changed[:10] == [True] * 10
    assert changed[20:] == [False] * 20


class ContextWatermarker:
    """As vLLM's: a token for each context, and its PRF is asked for places among what it is given."""

    context_width = 2

    def __init__(self) -> None:
        self.prf = self

    def uniform(self, contexts: torch.Tensor, token_ids: torch.Tensor) -> torch.Tensor:
        return ((token_ids * 37 + contexts.sum()) % 101).float() / 101

    def sample(
        self, logits: torch.Tensor, contexts: torch.Tensor, sampler: object, skip: torch.Tensor
    ) -> object:
        uniform = self.prf.uniform(contexts, torch.arange(logits.shape[-1]))
        return SimpleNamespace(token_ids=torch.where(skip, -1, uniform.argmax(-1, keepdim=True)))


def test_vllms_class_sees_kept_tokens_under_their_own_ids_and_each_context_once() -> None:
    row = VllmRow(ContextWatermarker(), 2)
    scores = torch.full((1, VOCABULARY), -torch.inf)
    kept = torch.tensor([3, 50, 120, 299])
    scores[0, kept] = 0.0
    tokens = [8, 9]
    for _ in range(3):
        context = [-1, -1, *tokens[2:]][-2:]
        expected = max(kept.tolist(), key=lambda token: (token * 37 + sum(context)) % 101)
        only = row(torch.tensor([tokens]), scores)
        assert only[0].isfinite().nonzero().tolist() == [[expected]]
        tokens.append(expected)
    repeated = row(torch.tensor([[8, 9]]), scores)
    assert repeated[0].isfinite().nonzero().tolist() == [[299]]  # -1, the last of the kept: drawn at random


@pytest.fixture(scope="module")
def peers() -> PeerSource:
    return PeerSource(EngineSource(str(DEMO_MODEL_PATH), Path(PROMPTS_PATH), EngineSettings(threads=1)))


def written(peers: PeerSource, cell: Cell, count: int, seed: int = 0) -> list[Completion]:
    made: list[Completion] = []
    peers.generate(cell, range(count), seed, made.append)
    return made


@pytest.mark.parametrize("name", ["peer-synthid", "peer-kgw"])
def test_a_text_is_found_under_its_own_key_and_no_other(peers: PeerSource, name: str) -> None:
    system = SYSTEMS[name]
    cell = Cell(name, 1, SETTING, 60)
    texts = written(peers, cell, 6)
    assert all(len(text.token_ids) == 60 for text in texts)

    def log10_p(shift: int) -> list[float]:
        keys = [cell.key(0, (text.index + shift) % 6) for text in texts]
        marks = [system.mark(key, peers.vocabulary) for key in keys]
        return [mark.detect(text.token_ids).log10_p for mark, text in zip(marks, texts, strict=True)]

    assert np.median(log10_p(0)) < -4
    assert min(log10_p(1)) > -3


def test_a_seed_gives_its_texts_again_and_padding_is_not_seen(peers: PeerSource) -> None:
    cell = Cell(None, 1, SETTING, 8, prompts=3)
    assert [text.token_ids for text in written(peers, cell, 3)] == [
        text.token_ids for text in written(peers, cell, 3)
    ]
    sharp = Cell(None, 1, SamplingSetting(1, 1.0, 1.0), 8, prompts=3)
    together = [text.token_ids for text in written(peers, sharp, 3)]
    alone: list[Completion] = []
    for index in range(3):
        peers.generate(sharp, [index], 0, alone.append)
    assert together == [text.token_ids for text in alone]


def test_top_k_and_top_p_are_applied_before_the_mark(peers: PeerSource) -> None:
    cell = Cell("peer-kgw", 1, SamplingSetting(2, 1.0, 1.0), 1, prompts=1)
    first = Counter(text.token_ids[0] for text in written(peers, cell, 40))
    plain = Counter(
        text.token_ids[0] for text in written(peers, Cell(None, 1, cell.setting, 1, prompts=1), 40)
    )
    assert set(first) <= set(plain)
    assert len(plain) == 2


def test_prompts_are_padded_on_the_left() -> None:
    tokens, mask = padded([[5], [6, 7]])
    assert tokens.tolist() == [[0, 5], [6, 7]]
    assert mask.tolist() == [[0, 1], [1, 1]]
