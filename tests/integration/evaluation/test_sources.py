"""One engine, and the prompts that it is asked with."""

from pathlib import Path

from ttmark.evaluation.cells import Cell, SamplingSetting
from ttmark.evaluation.run import Completion, TextSource
from ttmark.evaluation.sources import EngineSource
from ttmark.gen_service.engine import EngineSettings

CELL = Cell("gumbel", 2, SamplingSetting(0, 1.0, 1.0), 12)


def _texts(source: TextSource) -> dict[int, tuple[int, ...]]:
    found: list[Completion] = []
    source.generate(CELL, range(3), 0, found.append)
    return {text.index: text.token_ids for text in found}


def test_other_prompts_give_the_texts_of_a_source_that_has_them(model: Path, prompts: Path) -> None:
    others = prompts.with_name("others.jsonl")
    others.write_text('{"prompt": "sigh"}\n{"prompt": "over and over"}\n')
    settings = EngineSettings(threads=1)
    source, reference = (EngineSource(str(model), path, settings) for path in (prompts, others))
    try:
        asking = source.asking(reference.prompts)
        assert _texts(asking) == _texts(reference) != _texts(source)
        assert asking.prompts == reference.prompts != source.prompts
    finally:
        source.close()
        reference.close()
