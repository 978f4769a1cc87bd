"""A tokenizer of words, and an engine over the demo model."""

from collections.abc import Iterator

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.tokenization import TextTokenizer


@pytest.fixture
def words() -> TextTokenizer:
    """One token for each of w0 to w199, and one for anything else."""
    vocabulary = {"[UNK]": 0} | {f"w{number}": number + 1 for number in range(200)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return TextTokenizer(tokenizer)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine.load(str(DEMO_MODEL_PATH), EngineSettings(model_id="demo", threads=1, device="cpu"))
    engine.start()
    yield engine
    engine.stop(0)
