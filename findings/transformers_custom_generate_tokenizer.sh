#!/usr/bin/env bash
# transformers 5.23.0: `generate` takes away the tokenizer that it is given where `custom_generate` is a function, and then asks for it.
# Seen: generate(stop_strings=["."], tokenizer=tok, custom_generate=f) raises "we could not locate a tokenizer"; without custom_generate the
# same call writes. `_extract_generation_mode_kwargs` pops `tokenizer`, then replaces what it collected by the parameters that `f` names.
# A parameter of f called `stop_strings` is handed to f instead, and the criteria of transformers do not see it.
# Fails if one of the three changes.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" -q install "transformers==5.23.0" "torch==2.13.0" numpy
"$dir/venv/bin/python" - <<'PY'
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())  # one token for each byte
words = Tokenizer(models.BPE(vocab={symbol: i for i, symbol in enumerate(alphabet)}, merges=[]))
words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words)
torch.manual_seed(1)
model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_embd=8, n_layer=1, n_head=1, n_positions=64, eos_token_id=0, bos_token_id=0))
asked = dict(input_ids=torch.tensor([[70, 71]]), attention_mask=torch.ones(1, 2, dtype=torch.long), do_sample=True, max_new_tokens=5,
             pad_token_id=0, stop_strings=["."], tokenizer=tokenizer)
print("without custom_generate:", model.generate(**asked).tolist())
try:
    model.generate(**asked, custom_generate=lambda model, input_ids, **rest: input_ids)
    raise SystemExit("CHANGED: a function is called with stop strings")
except ValueError as error:
    print("with a function:", error)
    assert "could not locate a tokenizer" in str(error)
seen = {}
def named(model, input_ids, stop_strings=None, tokenizer=None, **rest):
    seen.update(stop_strings=stop_strings, tokenizer=tokenizer)
    return input_ids
model.generate(**asked, custom_generate=named)
print("a function that names both:", seen)
assert seen == {"stop_strings": ["."], "tokenizer": None}, "CHANGED"
PY
