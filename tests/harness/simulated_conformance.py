"""A conformance run on the simulated language model: the deployed key marks, detection is the service's."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.progress import Progress
from tokenizers import Tokenizer, models, pre_tokenizers

from tests.harness.simulated_model import VOCABULARY, SimulatedModel, write_text
from ttmark.evaluation.conformance.measure import Conformance
from ttmark.evaluation.conformance.plan import CHAT, PLAIN, TextCounts
from ttmark.evaluation.experiment_cells import Cell, sampling_seed
from ttmark.evaluation.run_folder import Detect, GeneratedText, OnText, OnTokens, Questions, Run
from ttmark.evaluation.unmarked_texts import TextSet
from ttmark.services.features.conformance.conformance_run import detection
from ttmark.shared.keys.held_keys import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.keys.key_codec import derive_prf_keys
from ttmark.shared.schemas.profile import Profile, profile_fields
from ttmark.shared.tokenization import TextTokenizer

PLAN = TextCounts({CHAT: 18, PLAIN: 9}, 12, 80, (40, 80), 0, 0, 3)
SECRET = bytes(range(32))


def _word_for_each_token() -> TextTokenizer:
    words = {f"w{token}": token for token in range(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return TextTokenizer(tokenizer)


TOKENIZER = _word_for_each_token()


def simulated_key(secret: bytes = SECRET) -> UnlockedKey:
    profile = Profile.model_validate(profile_fields(tokenizer_fingerprint=TOKENIZER.fingerprint))
    version = UnlockedVersion(1, KeyState.PRIMARY, *derive_prf_keys(secret, profile))
    return UnlockedKey("assistant", "acme", profile, 1, (version,))


class SimulatedAnswers:
    """A `TextSource` whose marked answers have keys of the pool; counts what it makes."""

    def __init__(self, key: UnlockedKey) -> None:
        self._key = key
        self.made = 0

    def generate(
        self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText, on_tokens: OnTokens
    ) -> None:
        version = self._key.primary
        assert version is not None
        for index in indices:
            self.made += 1
            number = sampling_seed(seed, cell.name, index)
            prf_key = version.prf_keys[number % len(version.prf_keys)]
            generator = np.random.default_rng(number)
            tokens = write_text(SimulatedModel(), cell, prf_key, (number % VOCABULARY,), generator)
            on_tokens(len(tokens))
            on_text(GeneratedText(index, tokens))


def simulated_run(
    folder: Path, seed: int, *, marks: UnlockedKey | None = None, detect: Detect | None = None
) -> Conformance:
    """A run in a folder, whose answers are marked with what is looked for unless said."""
    key, progress = simulated_key(), Progress(disable=True)
    documents = np.random.default_rng(0).integers(VOCABULARY, size=(100, 600))
    chosen = np.random.default_rng(seed).permutation(len(documents))[:20]
    people = tuple(TOKENIZER.decode(documents[one, :100].tolist()) for one in chosen)
    return Conformance(
        run=Run(folder, SimulatedAnswers(marks or key), seed, progress),
        questions=Questions(folder, detect or detection(TOKENIZER), progress),
        tokenizer=TOKENIZER,
        key=key,
        plan=PLAN,
        sets=(TextSet("people", "words at random", people),),
    )
