"""`generation_config.json`: what a model's own file says of sampling, and what ends the start."""

import json
from pathlib import Path
from typing import Any

import pytest

from ttmark.services.model_folder import read_sampling_defaults
from ttmark.services.startup import StartupError
from ttmark.shared.schemas.generation.sampling import SamplingDefaults


def read(folder: Path, said: Any) -> SamplingDefaults:
    text = said if isinstance(said, str) else json.dumps(said)
    (folder / "generation_config.json").write_text(text)
    return read_sampling_defaults(folder)


def test_without_a_file_openai_s_hold(tmp_path: Path) -> None:
    assert read_sampling_defaults(tmp_path) == SamplingDefaults()


def test_what_the_file_says_holds_and_the_rest_is_left_aside(tmp_path: Path) -> None:
    said = {
        "temperature": 0.7,
        "top_p": 0.8,
        "top_k": 20,
        "min_p": 0.05,
        "repetition_penalty": 1.05,
        "do_sample": False,
        "eos_token_id": [2, 3],
        "max_new_tokens": 7,
        "typical_p": "?",
    }
    expected = SamplingDefaults(
        temperature=0.7, top_p=0.8, top_k=20, min_p=0.05, repetition_penalty=1.05, max_new_tokens=7
    )
    assert read(tmp_path, said) == expected


@pytest.mark.parametrize(
    "said",
    [
        {"do_sample": False},
        {"temperature": 0},
        {"temperature": 0.0, "do_sample": False},
        {"top_k": -1},
        {"top_k": 0},
        dict.fromkeys(SamplingDefaults.model_fields),
    ],
)
def test_nothing_becomes_greedy_and_null_says_nothing(tmp_path: Path, said: dict[str, Any]) -> None:
    assert read(tmp_path, said) == SamplingDefaults()


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": 2.5}, "temperature"),
        ({"temperature": "0.7"}, "temperature"),
        ({"temperature": False}, "temperature"),
        ('{"temperature": 1e400}', ""),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_k": -2}, "top_k"),
        ({"top_k": 2.5}, "top_k"),
        ({"top_k": True}, "top_k"),
        ({"min_p": 2}, "min_p"),
        ({"repetition_penalty": 0.9}, "repetition_penalty"),
        ({"repetition_penalty": [1.1]}, "repetition_penalty"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"max_new_tokens": 7.5}, "max_new_tokens"),
        ('{"temperature": NaN}', ""),
        ("[]", ""),
        ("{", ""),
        ("\udce9", ""),
    ],
)
def test_a_value_that_no_request_could_name_ends_the_start_in_one_line(
    tmp_path: Path, said: Any, field: str
) -> None:
    if said == "\udce9":
        (tmp_path / "generation_config.json").write_bytes(b"\xe9")
        said = None
    with pytest.raises(StartupError) as refusal:
        read_sampling_defaults(tmp_path) if said is None else read(tmp_path, said)
    message = str(refusal.value)
    assert message.count("\n") == 0
    assert "generation_config.json" in message
    assert field in message
    assert "TTMARK_GENERATION_DEFAULTS=openai" in message
