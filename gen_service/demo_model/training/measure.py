"""What the model card states: held-out loss, loss by position, entropy and candidates of its own samples."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from gen_service.demo_model.training import corpus, tokenizer
from gen_service.demo_model.training.train import MAX_LENGTH, SHORT_LENGTH

SEED = 7
PROMPT_TOKENS = 32


@dataclass(frozen=True)
class Sampling:
    """Sampling settings, applied in the order temperature, top-k, top-p."""

    top_k: int
    top_p: float
    temperature: float


STANDARD = Sampling(top_k=50, top_p=0.95, temperature=1.0)
STRICT = Sampling(top_k=20, top_p=0.8, temperature=0.7)


@dataclass(frozen=True)
class HeldOut:
    """Loss on held-out text: nats per token, bits per byte, and bytes per token."""

    nats_per_token: float
    bytes_per_token: float

    @property
    def bits_per_byte(self) -> float:
        """Loss per byte of UTF-8 text, which does not depend on the tokenizer."""
        return self.nats_per_token / self.bytes_per_token / math.log(2)


@dataclass(frozen=True)
class Choice:
    """Means over sampled positions: nats of the filtered distribution, tokens left in it, new 4-grams."""

    entropy: float
    candidates: float
    novelty: float


@torch.inference_mode()
def token_losses(model: LlamaForCausalLM, ids: Tensor) -> Tensor:
    """Nats of each token given those before it in its row. [rows, length] -> [rows, length - 1]."""
    logits = model(input_ids=ids).logits[:, :-1].float()
    return torch.nn.functional.cross_entropy(logits.mT, ids[:, 1:], reduction="none")


def _documents(folder: Path) -> list[Tensor]:
    """Ids of each held-out document after an end-of-text token. [length] each."""
    texts = [tokenizer.END_OF_TEXT + document["text"] for document in corpus.read(folder / "held_out.jsonl")]
    return [torch.tensor(encoding.ids) for encoding in tokenizer.load(folder).encode_batch_fast(texts)]


def held_out_loss(folder: Path, model: LlamaForCausalLM) -> HeldOut:
    """Loss on the first 512 tokens of each held-out document, so that no long one weighs much."""
    decoder = tokenizer.load(folder)
    nats, count, size = 0.0, 0, 0
    for document in _documents(folder):
        ids = document[:SHORT_LENGTH]
        nats += token_losses(model, ids[None]).sum().item()
        count += len(ids) - 1
        size += len(decoder.decode(ids[1:].tolist()).encode())
    return HeldOut(nats / count, size / count)


def loss_by_position(folder: Path, model: LlamaForCausalLM) -> dict[str, float]:
    """Mean nats per token over ranges of the position in the held-out documents of 2,048 tokens or more."""
    rows = [document[:MAX_LENGTH] for document in _documents(folder) if len(document) >= MAX_LENGTH]
    means = torch.stack([token_losses(model, row[None])[0] for row in rows]).mean(0)
    bounds = (0, 128, 512, 1024, 1536, MAX_LENGTH - 1)
    return {f"{low + 1}-{high}": means[low:high].mean().item() for low, high in pairwise(bounds)}


def overlap(folder: Path) -> float:
    """Share of the held-out word 13-grams that training documents contain too, as pages have editions."""
    held_out = {
        gram for document in corpus.read(folder / "held_out.jsonl") for gram in _grams(document["text"])
    }
    train = (gram for document in corpus.read(folder / "train.jsonl") for gram in _grams(document["text"]))
    return len(held_out.intersection(train)) / len(held_out)


def _grams(text: str) -> Iterator[int]:
    for paragraph in text.lower().split("\n\n"):
        words = paragraph.split()
        yield from (hash(tuple(words[i : i + 13])) for i in range(len(words) - 12))


def sample(model: LlamaForCausalLM, ids: Tensor, length: int, sampling: Sampling) -> tuple[Tensor, Choice]:
    """`length` new ids for each row, and what there was to choose. [rows, prompt] -> [rows, length]."""
    torch.manual_seed(SEED)
    output = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=True,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        temperature=sampling.temperature,
        min_new_tokens=length,
        max_new_tokens=length,
        output_scores=True,
        return_dict_in_generate=True,
    )
    probabilities = torch.stack(output.scores).float().softmax(-1)  # [length, rows, vocab]
    entropy = torch.special.entr(probabilities).sum(-1).mean().item()
    candidates = (probabilities > 0).sum(-1).float().mean().item()
    continuation = output.sequences[:, ids.shape[1] :]
    distinct = sum(len(row.unfold(0, 4, 1).unique(dim=0)) for row in continuation)
    novelty = distinct / (len(ids) * (length - 3))
    return continuation, Choice(entropy, candidates, novelty)


def prompts(folder: Path, count: int) -> Tensor:
    """The first 32 tokens of held-out documents. [count, 32]."""
    long_enough = [document for document in _documents(folder) if len(document) > PROMPT_TOKENS]
    return torch.stack([document[1 : PROMPT_TOKENS + 1] for document in long_enough[:count]])
