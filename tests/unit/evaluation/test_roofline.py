"""`ttmark bench roofline`: the engine's steps beside their matrix products alone."""

from pathlib import Path

import orjson
import pytest
import torch
from transformers import LlamaConfig
from typer.testing import CliRunner

from ttmark.evaluation.bench.products import Products, usual_rows
from ttmark.evaluation.bench.random_model import save_random_model
from ttmark.evaluation.bench.roofline import Share
from ttmark.evaluation.bench.watched_runner import StepTime, WatchedRunner
from ttmark.evaluation.cli.bench import bench_app
from ttmark.gen_service.engine import EngineSettings
from ttmark.gen_service.engine.kv_cache import KvCache
from ttmark.gen_service.engine.loading import load_model
from ttmark.gen_service.engine.ragged import Append
from ttmark.services.bulk_systems import bulk_systems


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    config = LlamaConfig(
        vocab_size=300, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=128, bos_token_id=None, eos_token_id=0, pad_token_id=None,
    )  # fmt: skip
    save_random_model(folder, config)
    return folder


class Ticks:
    """A clock that goes on by one second each time it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_the_products_are_those_of_the_weights(tiny: Path) -> None:
    runner = WatchedRunner(load_model(str(tiny), EngineSettings(device="cpu")).model, KvCache(8))
    products = Products(runner.products)
    own = sum(each.numel() for each in runner.model.parameters() if each.dim() == 2)
    embedding = runner.model.model.embed_tokens.weight.numel()
    assert products.weight_bytes == 4 * (own - embedding)
    assert len(runner.products) == 2 * 4 + 1


def test_each_product_counts_in_its_faster_layout() -> None:
    measured = Products([torch.ones(3, 5), torch.ones(5, 2)], Ticks()).measure(4)
    assert (measured.rows, measured.layouts, measured.best) == (4, (2.0, 2.0), 2.0)


def test_rows_go_up_to_a_power_of_two() -> None:
    assert [list(usual_rows(most)) for most in (1, 4, 5)] == [[1], [1, 2, 4], [1, 2, 4, 8]]


def test_a_step_ends_where_the_next_begins_and_products_are_not_part_of_it(tiny: Path) -> None:
    runner = WatchedRunner(load_model(str(tiny), EngineSettings(device="cpu")).model, KvCache(32))
    products = Products(runner.products, lambda: 0.0)
    with torch.inference_mode():
        products.measure(1)
    runner.clock = Ticks()
    runner.watch(products)
    runner.forward([Append(0, 0, [1, 2, 3], is_chunk=True, wants_logits=False)])
    for position in (3, 4, 5):
        runner.forward([Append(0, position, [7], is_chunk=False, wants_logits=True)])
    # Of four readings between two begins, one second lies between a pass's end and that of the products.
    assert runner.watch(None) == [StepTime(1, 2.0, 0.0)] * 2
    runner.forward([Append(0, 6, [7], is_chunk=False, wants_logits=True)])
    assert runner.steps == []


def test_shares_are_medians_and_need_steps() -> None:
    steps = [StepTime(4, 2.0, 1.0), StepTime(4, 4.0, 1.0), StepTime(7, 100.0, 75.0)]
    assert Share.of("pairs", 8, steps, 1.0) == Share("pairs", 8, 5, 4.0, 0.5, 0.25)
    with pytest.raises(ValueError, match="more tokens"):
        Share.of("pairs", 8, [], 1.0)


def test_the_command_reports_floors_and_shares_with_the_machine(tiny: Path, tmp_path: Path) -> None:
    target = tmp_path / "roofline.json"
    arguments = ["roofline", "--model", str(tiny), "--sequences", "1,2", "--tokens", "12", "--threads", "1"]
    result = CliRunner().invoke(bench_app(bulk_systems), [*arguments, "--json", str(target)])
    assert result.exit_code == 0, result.output
    document = orjson.loads(target.read_bytes())
    floors = [row for row in document["rows"] if "memory" in row]
    shares = [row for row in document["rows"] if "floor" in row]
    assert [row["rows"] for row in floors] == [2**power for power in range(9)]
    assert all(0 < row["products"] <= min(row["inputs_first"], row["outputs_first"]) for row in floors)
    assert [(row["sequences"], row["name"]) for row in shares] == [
        (1, "plain"),
        (1, "pairs"),
        (2, "plain"),
        (2, "pairs"),
    ]
    assert all(0 < row["products"] < 1 and row["seconds"] > 0 for row in shares)
    assert document["machine"]["processor"]
