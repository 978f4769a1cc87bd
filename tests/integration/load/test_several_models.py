"""One service with two models: requests choose by name, each model has its own watermark keys."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tokenizers import Tokenizer

from tests.harness.random_model import END_OF_TEXT, save_random_model, small_llama
from ttmark.services.local.provision import LocalSetup, provision
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.startup import StartupError
from ttmark.shared.tokenization import TextTokenizer


@dataclass
class Pair:
    first: LocalSetup
    second: LocalSetup
    http: httpx.Client

    def complete(self, model: str, **fields: Any) -> httpx.Response:
        body = {"model": model, "prompt": "The", "max_tokens": 24, "seed": 1, "ignore_eos": True, **fields}
        return self.http.post("/v1/completions", json=body | {"return_token_ids": True})


@pytest.fixture(scope="module")
def other_setup(tiny_setup: LocalSetup) -> LocalSetup:
    """Another random model, with a tokenizer that numbers its tokens otherwise, in the same key store."""
    folder = tiny_setup.state.parent / "other"
    heads = {"num_hidden_layers": 1, "num_attention_heads": 2}
    config = small_llama(**heads, hidden_size=48, max_position_embeddings=128)
    save_random_model(folder, config, seed=1)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_special_tokens([END_OF_TEXT, "<|other|>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return provision(str(folder), None, tiny_setup.state)


@pytest.fixture
def pair(start: Any, tiny_setup: LocalSetup, other_setup: LocalSetup) -> Iterator[Pair]:
    service = start(
        tiny_setup,
        model=f"{tiny_setup.model}, {other_setup.model}",
        default_key=f"{tiny_setup.key_id},{other_setup.key_id}",
        dtype="float32",
        reproducible="true",
    )
    service.wait_until_ready()
    headers = {"Authorization": f"Bearer {tiny_setup.token}"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=60) as http:
        yield Pair(tiny_setup, other_setup, http)


async def test_a_request_chooses_the_model_and_with_it_the_key(pair: Pair) -> None:
    listed = {model["id"]: model for model in pair.http.get("/v1/models").json()["data"]}
    assert listed.keys() == {"tiny", "other"}
    for setup in (pair.first, pair.second):
        model = listed[setup.model_id]
        assert model["tokenizer_fingerprint"] == TextTokenizer.load(setup.tokenizer_folder).fingerprint
        (profile,) = model["profiles"]
        assert sorted(profile["key_ids"]) == sorted([setup.key_id, setup.other_key_id])
    alone = {name: pair.complete(name).json() for name in listed}
    assert alone["tiny"]["watermark"]["key_id"] == pair.first.key_id
    assert alone["other"]["watermark"]["key_id"] == pair.second.key_id
    assert alone["tiny"]["choices"][0]["token_ids"] != alone["other"]["choices"][0]["token_ids"]

    together = await asyncio.gather(
        *(asyncio.to_thread(pair.complete, name) for name in ["tiny", "other"] * 3)
    )
    for response in together:
        body = response.json()
        assert body["choices"] == alone[body["model"]]["choices"]

    of_the_other = pair.complete("tiny", watermark={"key_id": pair.second.key_id})
    assert (of_the_other.status_code, of_the_other.json()["error"]["param"]) == (400, "watermark.key_id")
    too_long = [pair.complete(name, max_tokens=200).status_code for name in ("tiny", "other")]
    assert too_long == [200, 400]
    unknown = pair.complete("third")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    metrics = pair.http.get("/metrics").text
    assert all(f'ttmark_engine_kv_cache_capacity_tokens{{model="{name}"}}' in metrics for name in listed)


def test_the_caches_of_several_models_share_what_one_would_have(monkeypatch: pytest.MonkeyPatch) -> None:
    from ttmark.services.composition.served_models import _CACHE_SHARE, _embedded_settings

    monkeypatch.setenv("TTMARK_MODEL", "demo,a/b,c/d")
    settings = GenerationSettings()
    assert sum(_embedded_settings(name, settings).memory_share for name in settings.model) <= _CACHE_SHARE


@pytest.mark.parametrize(("value", "reproducible"), [(None, False), ("true", True)])
def test_equal_texts_under_load_are_made_on_demand(monkeypatch, value, reproducible):
    from ttmark.services.composition.served_models import _embedded_settings

    if value is not None:
        monkeypatch.setenv("TTMARK_REPRODUCIBLE", value)
    assert _embedded_settings("demo", GenerationSettings(model=("demo",))).reproducible is reproducible


def test_two_models_of_one_name_are_refused(tmp_path: Path) -> None:
    from prometheus_client import CollectorRegistry

    from ttmark.gen_service.engine.loop.engine_metrics import EngineMetrics
    from ttmark.services.composition.served_models import Models

    folders = [tmp_path / "a" / "same", tmp_path / "b" / "same"]
    for folder in folders:
        folder.mkdir(parents=True)
    settings = GenerationSettings(model=tuple(map(str, folders)))
    with pytest.raises(StartupError, match="two models are called 'same'"):
        Models.load(settings, EngineMetrics(CollectorRegistry()))


def test_a_folder_with_a_comma_in_its_name_is_one_model(tmp_path, monkeypatch):
    folder = tmp_path / "a,b"
    folder.mkdir()
    monkeypatch.setenv("TTMARK_MODEL", str(folder))
    assert GenerationSettings().model == (str(folder),)
