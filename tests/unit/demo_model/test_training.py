"""The parts of the training that can be checked without training."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from gen_service.demo_model.training.corpus import MIN_DOCUMENT_CHARACTERS, deduplicate
from gen_service.demo_model.training.loss import next_token_loss
from gen_service.demo_model.training.optimizer import orthogonalize
from gen_service.demo_model.training.sources import decode
from gen_service.demo_model.training.train import MAX_LENGTH, batches, rate_factor

LONG = "word " * MIN_DOCUMENT_CHARACTERS


def test_a_paragraph_is_kept_where_it_is_first_seen() -> None:
    documents = list(deduplicate([("a:1", [LONG, "Same."]), ("b:2", [LONG.upper(), LONG + "Same."])]))
    assert [document["text"] for document in documents] == [LONG + "\n\nSame.", LONG + "Same."]


def test_short_documents_are_left_out() -> None:
    assert list(deduplicate([("a:1", ["Too short."])])) == []


def test_a_damaged_archive_member_is_skipped_with_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    assert decode("good.txt.gz", gzip.compress(b"text")) == "text"
    assert decode("bad.txt.gz", b"not gzip") == ""
    assert "bad.txt.gz" in capsys.readouterr().err


def test_chunked_loss_and_its_gradients_equal_the_plain_cross_entropy() -> None:
    torch.manual_seed(0)
    hidden = torch.randn(3, 400, 16, dtype=torch.float64).float().requires_grad_()
    embedding = torch.randn(50, 16).requires_grad_()
    ids = torch.randint(0, 50, (3, 400))
    logits = hidden[:, :-1] @ embedding.T
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    expected_gradients = torch.autograd.grad(expected, (hidden, embedding))
    loss = next_token_loss(hidden, embedding, ids)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, (hidden, embedding)), expected_gradients)


def test_orthogonalized_matrices_have_singular_values_near_one() -> None:
    torch.manual_seed(0)
    for shape in ((2, 32, 96), (2, 96, 32)):
        values = torch.linalg.svdvals(orthogonalize(torch.randn(shape)).float())
        assert values.min() > 0.5
        assert values.max() < 1.3


def test_the_learning_rate_rises_stays_and_falls_to_zero() -> None:
    factors = [rate_factor(progress) for progress in (0.0, 0.005, 0.2, 0.7, 1.0, 1.1)]
    assert factors == pytest.approx([0.0, 0.5, 1.0, 0.5, 0.0, 0.0])


def test_an_epoch_of_batches_visits_every_window_once_and_can_be_resumed() -> None:
    ids = np.repeat(np.arange(4, dtype=np.uint16), MAX_LENGTH)
    stream = batches(ids, 0)
    first, second = next(stream), next(stream)
    assert first.shape == (2, MAX_LENGTH)
    assert second.shape == (8, 512)
    assert sorted({*first.unique().tolist(), *second.unique().tolist()}) == list(range(4))
    torch.testing.assert_close(next(batches(ids, 1)), second)


def test_held_out_files_hold_prompts_and_the_longest_documents(tmp_path: Path) -> None:
    from gen_service.demo_model.training import held_out

    texts = ["Short paragraph only.", " ".join(map(str, range(60))) + "\n\nToo short."]
    lines = [f'{{"source": "a:{i}", "text": {text!r}}}\n'.replace("'", '"') for i, text in enumerate(texts)]
    (tmp_path / "held_out.jsonl").write_text("".join(lines))
    held_out.write(tmp_path, tmp_path / "prompts.jsonl", tmp_path / "human.jsonl.gz")
    expected = " ".join(map(str, range(held_out.PROMPT_WORDS)))
    assert (tmp_path / "prompts.jsonl").read_text() == f'{{"prompt": "{expected}"}}\n'
    human = gzip.decompress((tmp_path / "human.jsonl.gz").read_bytes()).decode().splitlines()
    assert [line[:15] for line in human] == ['{"source": "a:1', '{"source": "a:0']
