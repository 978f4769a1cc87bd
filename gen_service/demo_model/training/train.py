"""Trains the model for a given time, checkpointing so that an interrupted run continues."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from gen_service.demo_model.training import corpus, tokenizer
from gen_service.demo_model.training.loss import next_token_loss
from gen_service.demo_model.training.optimizer import Optimizer

MAX_LENGTH = 2048
SHORT_LENGTH = 512
LONG_EVERY = 5
ROWS = 2
WARMUP_SHARE = 0.01
DECAY_SHARE = 0.6
CHECKPOINT_SECONDS = 180
LOG_EVERY = 50
SEED = 2026


def new_model() -> LlamaForCausalLM:
    """The untrained model, bf16; about 3 million parameters, half of them in the tied embedding."""
    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=tokenizer.VOCABULARY,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=3,
        num_key_value_heads=1,
        head_dim=64,
        max_position_embeddings=MAX_LENGTH,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.END_OF_TEXT_ID,
        eos_token_id=tokenizer.END_OF_TEXT_ID,
        pad_token_id=tokenizer.END_OF_TEXT_ID,
        dtype="bfloat16",
    )
    return LlamaForCausalLM(config).bfloat16()


def tokens(folder: Path, split: str) -> npt.NDArray[np.uint16]:
    """All documents of `split`, end-of-text tokens around them; tokenized once and kept as `{split}.npy`."""
    path = folder / f"{split}.npy"
    if not path.exists():
        encoder = tokenizer.load(folder)
        texts = [document["text"] for document in corpus.read(folder / f"{split}.jsonl")]
        ids = [tokenizer.END_OF_TEXT_ID]
        for start in range(0, len(texts), 1000):
            for encoding in encoder.encode_batch_fast(texts[start : start + 1000]):
                ids += [*encoding.ids, tokenizer.END_OF_TEXT_ID]
        np.save(path, np.array(ids, dtype=np.uint16))
    return np.load(path)  # type: ignore[no-any-return]


def batches(ids: npt.NDArray[np.uint16], start: int) -> Iterator[Tensor]:
    """Batches from number `start` on: windows in an order that the epoch shuffles, short but for every fifth.

    Each holds the same number of tokens, as [2, 2048] or [8, 512]; the long ones teach the far positions.
    """
    windows = len(ids) // MAX_LENGTH
    per_epoch = windows // ROWS
    for number in range(start, 1 << 62):
        epoch, index = divmod(number, per_epoch)
        order = np.random.default_rng(SEED + epoch).permutation(windows)[index * ROWS : (index + 1) * ROWS]
        rows = np.stack([ids[row * MAX_LENGTH : (row + 1) * MAX_LENGTH] for row in order])
        length = MAX_LENGTH if number % LONG_EVERY == 0 else SHORT_LENGTH
        yield torch.from_numpy(rows.astype(np.int64)).view(-1, length)


def rate_factor(progress: float) -> float:
    """Learning-rate factor at `progress` in [0, 1] of the time: warm-up, plateau, linear decay to zero."""
    return max(0.0, min(1.0, progress / WARMUP_SHARE, (1 - progress) / DECAY_SHARE))


def train(folder: Path, minutes: float, threads: int) -> None:
    """Train in `folder` for `minutes` of wall clock, earlier runs included, and write `checkpoint.pt`."""
    torch.set_num_threads(threads)
    model = new_model().train()
    optimizer = Optimizer(model)
    path = folder / "checkpoint.pt"
    elapsed = 0.0
    if path.exists():
        checkpoint = torch.load(path)
        optimizer.restore(checkpoint["optimizer"])
        elapsed = checkpoint["elapsed"]
    began = saved = time.monotonic()
    losses: list[float] = []
    for batch in batches(tokens(folder, "train"), optimizer.steps):
        progress = (elapsed + time.monotonic() - began) / (60 * minutes)
        if progress >= 1:
            break
        hidden = model.model(input_ids=batch, use_cache=False).last_hidden_state
        loss = next_token_loss(hidden, model.model.embed_tokens.weight, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step(rate_factor(progress))
        losses.append(loss.item())
        if optimizer.steps % LOG_EVERY == 0:
            mean = sum(losses[-LOG_EVERY:]) / LOG_EVERY
            speed = len(losses) * ROWS * MAX_LENGTH / (time.monotonic() - began)
            print(f"step {optimizer.steps} {progress:6.1%} loss {mean:.3f} {speed:.0f} tokens/s", flush=True)
        if time.monotonic() - saved > CHECKPOINT_SECONDS:
            saved = time.monotonic()
            _save(path, optimizer, elapsed + saved - began)
    _save(path, optimizer, 60 * minutes)


def _save(path: Path, optimizer: Optimizer, elapsed: float) -> None:
    draft = path.with_suffix(".draft")
    torch.save({"optimizer": optimizer.state(), "elapsed": elapsed}, draft)
    draft.replace(path)
