"""Portable marks: vectors are what our code says, a stranger's program reads them, commands do so too."""

import json
import stat
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from typer.testing import CliRunner, Result

from tests.harness import portable_reader
from tests.harness.golden_portable import GIVEN, VECTORS, described, texts, vectors
from tests.unit.keys.test_commands import folder, invoke
from ttmark.detect_service.portable_detection import answer_for
from ttmark.services.cli.main import app
from ttmark.shared.keys.portable_mark import MarkRefused, MarkSecret, PortableMark
from ttmark.shared.watermark.foreign import VllmGumbel

__all__ = ["folder"]

FILE: dict[str, Any] = json.loads(VECTORS.read_text())
REFUSED = {one["why"]: one for one in FILE["refused"]}
KEY = GIVEN["vllm-gumbel"]["key"]


def rounded(value: Any) -> Any:
    """JSON with its doubles at 9 decimals: the last digits are the processor's."""
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def files(pair: dict[str, Any]) -> tuple[PortableMark, MarkSecret]:
    return tuple(  # type: ignore[return-value]
        kind.read(json.dumps(pair[name]).encode())
        for kind, name in ((PortableMark, "mark"), (MarkSecret, "secret"))
    )


def checked(pair: dict[str, Any]) -> None:
    mark, secret = files(pair)
    mark.check(secret)


def test_the_published_vectors_are_what_our_code_says() -> None:
    assert rounded(json.loads(json.dumps(vectors()))) == rounded(FILE)


def test_a_program_written_from_the_page_gets_every_vector() -> None:
    for one in FILE["philox"]:
        counter, key, output = ([int(word, 16) for word in one[name].split()] for name in one)
        assert list(portable_reader.philox(counter, key)) == output
    for one in FILE["vllm-gumbel"]:
        key, width = portable_reader.opened(one["mark"], one["secret"])
        for text in one["texts"]:
            tokens = text["token_ids"]
            padded = [-1] * width + tokens
            draws = [
                [place, portable_reader.draw(key, padded[place : place + width], tokens[place])]
                for place, _, _ in text["draws"]
            ]
            assert draws == [draw[:2] for draw in text["draws"]]
            answer = portable_reader.detect(key, width, tokens, one["fpr"])
            assert rounded(answer) == rounded({name: text[name] for name in answer})
    verdicts = [text["verdict"] for one in FILE["vllm-gumbel"] for text in one["texts"]]
    assert set(verdicts) == {"watermarked", "not_detected", "too_short"}


@pytest.mark.parametrize("why", REFUSED)
def test_what_was_changed_is_refused_by_both(why: str) -> None:
    with pytest.raises(MarkRefused):
        checked(REFUSED[why])
    with pytest.raises(portable_reader.Refused):
        portable_reader.opened(REFUSED[why]["mark"], REFUSED[why]["secret"])


def test_the_stranger_refuses_the_schemes_that_it_does_not_know() -> None:
    for one in FILE["commitments"]:
        if one["mark"]["scheme"] != "vllm-gumbel":
            with pytest.raises(portable_reader.Refused, match=one["mark"]["scheme"]):
                portable_reader.opened(one["mark"], one["secret"])


def test_every_scheme_answers_in_the_same_shape() -> None:
    shapes = set()
    for one in FILE["commitments"]:
        mark, secret = files(one)
        answer = answer_for(mark, secret, [5, 3, 1, 4, 2, 8, 7, 6] * 10, 1e-5)
        assert answer.verdict in ("not_detected", "too_short")
        assert 0.0 < answer.p_value <= 1.0
        shapes.add((answer.scheme, tuple(asdict(answer))))
    assert len(shapes) == 6
    assert len({shape for _, shape in shapes}) == 1


@pytest.mark.parametrize("name", list(GIVEN))
def test_a_key_of_few_bits_cannot_be_tried_on_the_mark_alone(name: str) -> None:
    """The same small key has another commitment under each salt, and the file has neither."""
    mark, secret = described(name, GIVEN[name], "ab" * 32)
    other = MarkSecret(salt="1" * 64, secrets=secret.secrets)
    assert PortableMark.of(mark.profile, other).commitment != mark.commitment
    assert secret.salt not in mark.written().decode()
    assert secret.secrets.keys().isdisjoint([*mark.stored(), *mark.parameters])


# The commands.


@pytest.fixture
def partner(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A key of vLLM in the store of a working directory, and a text that carries its mark."""
    (folder / "audit").mkdir()
    monkeypatch.setenv("TTMARK_AUDIT_FOLDER", "audit")
    words = Tokenizer(models.WordLevel({f"w{n}": n for n in range(50_000)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.save("model/tokenizer.json")
    Path("given.json").write_text(json.dumps(GIVEN["vllm-gumbel"]))
    imported = invoke("keys import partner given.json --scheme vllm-gumbel --tokenizer model")
    assert imported.exit_code == 0, imported.output
    marked, plain, *_ = texts(VllmGumbel(KEY))
    Path("marked.txt").write_text(" ".join(f"w{token}" for token in marked))
    Path("plain.txt").write_text(" ".join(f"w{token}" for token in plain))
    return folder


SECRET_OUT = "--secret-out secret.json --i-understand partner"


def detect(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["detect", *arguments, "--mark", "mark.json"])


def test_a_mark_is_described_and_found_elsewhere_without_a_store(partner, monkeypatch):
    result = invoke(f"keys describe partner --model words --out mark.json {SECRET_OUT}")
    assert result.exit_code == 0, result.output
    assert str(KEY) not in result.output + Path("mark.json").read_text()
    assert stat.S_IMODE(Path("secret.json").stat().st_mode) == 0o600
    (segment,) = Path("audit").glob("*.jsonl")
    event = json.loads(segment.read_bytes().splitlines()[-1])["event"]
    assert (event["action"], event["keys"]) == ("key.export", ["partner/1"])
    assert json.loads(invoke("keys list --json").stdout)[0]["versions"][0]["exported_at"]

    monkeypatch.delenv("TTMARK_AUDIT_FOLDER")
    (partner / ".ttmark" / "kek").unlink()
    arguments = ("marked.txt", "plain.txt", "--secret-file", "secret.json", "--tokenizer")
    found = detect(*arguments, "model", "--json", "--fail-on-found")
    assert found.exit_code == 3, found.output
    marked, plain = map(json.loads, found.stdout.splitlines())
    assert (marked["verdict"], marked["model"], marked["scored_tokens"]) == ("watermarked", "words", 30)
    assert plain["verdict"] == "not_detected"
    mark, secret = (json.loads(Path(f"{name}.json").read_text()) for name in ("mark", "secret"))
    tokens = [int(word[1:]) for word in Path("marked.txt").read_text().split()]
    own = portable_reader.detect(*portable_reader.opened(mark, secret), tokens, 1e-5)
    assert own["log10_p"] == pytest.approx(marked["log10_p"], abs=1e-9)
    reads = portable_reader.read_tokenizer("model/tokenizer.json", mark["tokenizer_fingerprint"])
    assert reads.encode(Path("marked.txt").read_text(), add_special_tokens=False).ids == tokens

    unknown = detect(*arguments[:-1])
    assert (unknown.exit_code, "--tokenizer" in unknown.output) == (1, True)
    known = partner / ".ttmark" / "models" / "words"
    known.mkdir(parents=True)
    Path("model/tokenizer.json").rename(known / "tokenizer.json")
    assert detect(*arguments[:-1], "--json").stdout == found.stdout


def test_another_tokenizer_a_changed_mark_and_another_secret_are_refused_in_one_line(partner: Path) -> None:
    assert invoke(f"keys describe partner --out mark.json {SECRET_OUT}").exit_code == 0
    secret = json.loads(Path("secret.json").read_text())
    arguments = ("marked.txt", "--secret-file", "secret.json", "--tokenizer", "model")
    assert detect(*arguments).exit_code == 0

    def refused(words: str) -> None:
        result = detect(*arguments)
        assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
        assert words in result.stderr

    Path("secret.json").write_text(json.dumps({**secret, "secrets": {"key": KEY + 1}}))
    refused("does not commit to this secret")
    Path("secret.json").write_text(json.dumps({**secret, "salt": KEY}))
    refused("not the secret file of a portable mark: salt")
    twice = json.dumps(secret).replace('"salt"', f'"salt": "{"0" * 64}", "salt"')
    Path("secret.json").write_text(twice)
    refused("a member stands there twice")
    Path("secret.json").write_text(json.dumps(secret))
    words = Tokenizer(models.WordLevel({"w0": 0}, unk_token="w0"))
    words.save("model/tokenizer.json")
    refused("another tokenizer")
    Path("mark.json").write_text(Path("mark.json").read_text().replace("vllm-gumbel", "vllm-gumble"))
    refused("its scheme is vllm-gumble, and known are vllm-gumbel")


def test_a_description_is_always_the_same_and_the_key_leaves_only_on_record(partner, monkeypatch):
    first = invoke("keys describe partner")
    assert first.stdout == invoke("keys describe partner").stdout
    assert json.loads(first.stdout)["scheme"] == "vllm-gumbel"
    unconfirmed = invoke("keys describe partner --secret-out secret.json")
    assert (unconfirmed.exit_code, "--i-understand" in unconfirmed.output) == (2, True)
    monkeypatch.delenv("TTMARK_AUDIT_FOLDER")
    assert "TTMARK_AUDIT_FOLDER" in invoke(f"keys describe partner {SECRET_OUT}").stderr
    monkeypatch.setenv("TTMARK_AUDIT_FOLDER", "audit")
    assert invoke("keys create mine --tokenizer model").exit_code == 0
    ours = invoke("keys describe mine")
    assert json.loads(ours.stdout)["scheme"] == "ttmark"
    refused = invoke("keys describe mine --secret-out secret.json --i-understand mine")
    assert (refused.exit_code, "ttmark keys export" in refused.stderr) == (1, True)
    assert not Path("secret.json").exists()
    assert invoke("keys rewrap").exit_code == 0
    assert invoke("keys describe partner").stdout == first.stdout
