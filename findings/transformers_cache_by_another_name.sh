#!/usr/bin/env bash
# transformers 5.24.0 calls the cache of a forward pass `cache`, 5.23.0 `past_key_values`. Where a side has the other name, the cache is
# lost without an error, because models take `**kwargs` and ignore what they do not know:
# - 5.23.0: model(last_token, cache=filled) computes the token as if nothing stood before it, and the cache stays empty. No warning.
# - 5.24.0: generate of a class of one's own whose forward names past_key_values, as until then, writes another text after the first token.
#   The only warning says that the name is deprecated.
# Seen with torch 2.13.0. Runs the same program with both; fails if one of them changes.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
cat > "$dir/seen.py" <<'PY'
import logging
import sys
import warnings

import torch
import transformers
from transformers import DynamicCache, GenerationMixin, LlamaConfig, LlamaForCausalLM, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

DEPRECATED = "`past_key_values`/`cache_params` are deprecated. Use `cache` instead."
told = []
handler = logging.Handler()
handler.emit = lambda record: told.append(record.getMessage())
transformers.utils.logging.get_logger("transformers").addHandler(handler)
warnings.showwarning = lambda message, *others: told.append(str(message))
warnings.simplefilter("always")

class Own(PreTrainedModel, GenerationMixin):
    config_class, _supports_sdpa = LlamaConfig, True

    def __init__(self, config):
        super().__init__(config)
        self.words, self.qkv = torch.nn.Embedding(64, 32), torch.nn.Linear(32, 96)
        self.lm_head = torch.nn.Linear(32, 64)
        self.post_init()

    def forward(self, input_ids, past_key_values=None, **kwargs):
        q, k, v = self.qkv(self.words(input_ids))[:, None].chunk(3, -1)  # one head
        if past_key_values is not None:
            k, v = past_key_values.update(k, v, 0)
        sees = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
        rows = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=sees)[:, 0]
        return CausalLMOutputWithPast(logits=self.lm_head(rows), past_key_values=past_key_values)

torch.manual_seed(1)
config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=1,
                     initializer_range=0.5, bos_token_id=None, eos_token_id=None, pad_token_id=0)
llama, own = LlamaForCausalLM(config).eval(), Own(config).eval()
ids = torch.tensor([[3, 4, 5, 6, 7, 8, 9, 10]])
with torch.no_grad():
    cache, at = DynamicCache(config=config), torch.tensor([[7]])
    llama(ids[:, :-1], cache=cache, use_cache=True)
    last = llama(ids[:, -1:], cache=cache, use_cache=True, position_ids=at).logits[0, -1]
    whole, alone = llama(ids).logits[0, -1], llama(ids[:, -1:], position_ids=at).logits[0, -1]
forward = "right" if torch.allclose(last, whole, atol=1e-4) else "token alone" if torch.allclose(last, alone, atol=1e-4) else "other"
options = dict(do_sample=False, max_new_tokens=12, attention_mask=torch.ones_like(ids))
cached, plain = (own.generate(ids, use_cache=used, **options)[0, 8:].tolist() for used in (True, False))
written = "the same" if cached == plain else "another"
print(transformers.__version__, "cache= of a Llama:", forward, "| cached positions:", cache.get_seq_length())
print("  own class:", written, "text with a cache", cached, "and without", plain, "| told:", told)
expected = {"5.23.0": ("token alone", 0, "the same", []), "5.24.0": ("right", 8, "another", [DEPRECATED])}[transformers.__version__]
assert (forward, cache.get_seq_length(), written, told) == expected and cached[0] == plain[0], "CHANGED"
PY
for version in 5.23.0 5.24.0; do
    "$dir/venv/bin/pip" -q install "transformers==$version" "torch==2.13.0" numpy
    "$dir/venv/bin/python" "$dir/seen.py"
done
