"""Writes the model card from measurements of the exported model."""

import json
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

from gen_service.demo_model.training import measure
from gen_service.demo_model.training.train import MAX_LENGTH, ROWS, tokens

SAMPLE_PROMPTS = (
    "The server reads its configuration file",
    "If the argument is not a valid number,",
    "This function returns",
    "In order to install the package, you need to",
    "The history of the project began when",
)
SAMPLE_TOKENS = 80
SAMPLE_SETTING = measure.Sampling(top_k=50, top_p=0.95, temperature=0.7)

_CARD = """\
---
license: apache-2.0
language: en
library_name: transformers
pipeline_tag: text-generation
---
# The TTMark demo model

A base language model of {parameters:.1f} million parameters: Llama architecture, {layers} layers,
width {width}, {heads} query and {kv_heads} key-value heads, tied embeddings, bf16;
{vocabulary:,} byte-level BPE tokens; context 2,048. It exists so that watermarking can be shown and
tested without a network or a GPU. It writes recognisable technical English and knows nothing reliably.

## Data
{characters:.0f} million characters of English prose from software documentation: Python docstrings,
manual pages, perl's pod, Info manuals and Debian documentation packages, reduced to paragraphs of full
sentences, deduplicated, 2 % of the documents held out. The texts are under the free licences of their
packages (GPL, LGPL, GFDL, BSD, MIT, Apache, PSF, Artistic and the like).
Largest sources, in million characters: {sources}.

## Training
{seen:.1f} million of the corpus's {tokens:.1f} million tokens, in under an hour on two CPU cores:
{steps:,} steps of 4,096 tokens in rows of 512 and, every fifth step, of 2,048; bf16 with fp32 master
weights, Muon for the hidden matrices and Adam for the rest, learning rates falling to zero over the last
60 % of the time. `python -m gen_service.demo_model.training --help` lists the stages.

## Measurements
Held-out loss: **{bits_per_byte:.3f} bits per byte**
({nats:.3f} nats per token, {bytes_per_token:.2f} bytes per token),
over the first 512 tokens of each held-out document. {overlap:.0%} of the held-out 13-word sequences also
occur in training documents, mostly as another edition of the page.

Sampled continuations of held-out text, {rows} of {length} tokens
(filters in the order temperature, top-k, top-p):

| top-k | top-p | T | entropy per token, nats | mean candidate count | 4-grams that are new to their text |
|---|---|---|---|---|---|
{choices}

Loss by position in held-out documents of at least 2,048 tokens, nats per token:

| position | {positions} |
|---|{rule}
| loss | {losses} |

## Samples
T 0.7, top-k 50, top-p 0.95, seed {seed}, prompts in bold, not selected:

{samples}

## Limits
English technical prose only. No facts, no instructions, no dialogue: the chat template renders messages
as paragraphs and the model continues them. Sentences are mostly grammatical and seldom make sense
together. Under strict sampling it repeats phrases and can end in a loop, as the last column shows.
"""


def write(folder: Path, model_folder: Path) -> None:
    """Measure the model in `model_folder` on the held-out text of `folder`; write `README.md` beside it."""
    model = AutoModelForCausalLM.from_pretrained(model_folder).eval()
    loss = measure.held_out_loss(folder, model)
    positions = measure.loss_by_position(folder, model)
    rows, length = 32, 200
    ids = measure.prompts(folder, rows)
    settings = (measure.STANDARD, measure.STRICT)
    choices = [(setting, measure.sample(model, ids, length, setting)[1]) for setting in settings]
    sources: dict[str, int] = json.loads((folder / "sources.json").read_text())
    steps = torch.load(folder / "checkpoint.pt")["optimizer"]["steps"]
    config = model.config
    text = _CARD.format(
        parameters=model.num_parameters() / 1e6,
        layers=config.num_hidden_layers,
        width=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        vocabulary=config.vocab_size,
        characters=sum(sources.values()) / 1e6,
        sources=", ".join(f"{name} {size / 1e6:.1f}" for name, size in list(sources.items())[:12]),
        tokens=len(tokens(folder, "train")) / 1e6,
        steps=steps,
        seen=steps * ROWS * MAX_LENGTH / 1e6,
        bits_per_byte=loss.bits_per_byte,
        nats=loss.nats_per_token,
        bytes_per_token=loss.bytes_per_token,
        overlap=measure.overlap(folder),
        rows=rows,
        length=length,
        choices="\n".join(
            f"| {s.top_k} | {s.top_p} | {s.temperature} "
            f"| {c.entropy:.2f} | {c.candidates:.1f} | {c.novelty:.0%} |"
            for s, c in choices
        ),
        positions=" | ".join(positions),
        rule="---|" * len(positions),
        losses=" | ".join(f"{value:.2f}" for value in positions.values()),
        seed=measure.SEED,
        samples="\n\n".join(_samples(model, model_folder)),
    )
    (model_folder / "README.md").write_text(text)


def _samples(model: LlamaForCausalLM, model_folder: Path) -> list[str]:
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    samples = []
    for prompt in SAMPLE_PROMPTS:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        continuation, _ = measure.sample(model, ids, SAMPLE_TOKENS, SAMPLE_SETTING)
        text = tokenizer.decode(continuation[0]).strip("\n").replace("\n\n", "\n>\n> ")
        samples.append(f"> **{prompt}**{text}")
    return samples
