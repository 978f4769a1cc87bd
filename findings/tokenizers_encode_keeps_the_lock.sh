#!/usr/bin/env bash
# tokenizers 0.23.3: Tokenizer.encode holds Python's global lock while it reads a text, so in whatever thread it runs no other thread goes on;
# encode_batch([text]) on the same text lets them run. Prints the longest wait of another thread that wakes every millisecond, as a share of the
# call. Fails if encode lets others run, or encode_batch does not.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" -q install "tokenizers==0.23.3"
"$dir/venv/bin/python" - <<'PY'
import threading
import time

from tokenizers import Tokenizer, models, pre_tokenizers

letters = pre_tokenizers.ByteLevel.alphabet()
tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
text = "word " * 200_000
longest, ended = 0.0, False


def beat() -> None:
    global longest
    while not ended:
        began = time.perf_counter()
        time.sleep(0.001)
        longest = max(longest, time.perf_counter() - began)


thread = threading.Thread(target=beat)
thread.start()


def share(call) -> float:
    """The longest wait of the other thread during the call, the least of three, as a share of the call."""
    global longest
    found = []
    for _ in range(3):
        longest, began = 0.0, time.perf_counter()
        read = call()
        time.sleep(0.005)  # the other thread notes its wait
        found.append(longest / (time.perf_counter() - began))
        del read
    return min(found)


alone, batch = share(lambda: tokenizer.encode(text)), share(lambda: tokenizer.encode_batch([text]))
ended = True
thread.join()
print(f"another thread waited for {alone:.0%} of encode, {batch:.0%} of encode_batch")
assert alone > 0.8 and batch < 0.5, "CHANGED"
PY
