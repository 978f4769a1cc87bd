"""Writes the trained weights and their tokenizer as a folder that `transformers` loads."""

import shutil
from pathlib import Path

import torch
from transformers import GenerationConfig, LlamaForCausalLM

from gen_service.demo_model.training import tokenizer
from gen_service.demo_model.training.train import new_model


def trained_model(folder: Path) -> LlamaForCausalLM:
    """The model with the weights of `folder`'s checkpoint; random weights where there is none yet."""
    model = new_model()
    path = folder / "checkpoint.pt"
    if path.exists():
        weights = torch.load(path)["optimizer"]["masters"]
        model.load_state_dict({name: weight.bfloat16() for name, weight in weights.items()}, strict=False)
    return model.eval()


def export(folder: Path, target: Path) -> None:
    """Write the checkpoint of `folder` as a model folder `target`, bf16 safetensors and tokenizer."""
    target.mkdir(parents=True, exist_ok=True)
    model = trained_model(folder)
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.END_OF_TEXT_ID,
        eos_token_id=tokenizer.END_OF_TEXT_ID,
        pad_token_id=tokenizer.END_OF_TEXT_ID,
        do_sample=True,
        temperature=0.7,
    )
    model.save_pretrained(target)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(folder / name, target / name)
