"""`ttmark detect --bulk` as it is used: processes, a key store on disk, kills."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ttmark.detect_service.features.bulk.row_format import InputRow
from ttmark.detect_service.features.bulk.run import Workers
from ttmark.services.cli.main import app
from ttmark.services.settings.store import open_store
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.whole_file import write_whole

ROWS = 400
POISON = """
import os
from ttmark.detect_service.features.bulk.examiner import Examiner

class Fragile:
    def examine(self, rows):
        if any(row.content == b"poison" for row in rows):
            os._exit(9)
        return b"".join(b"%d fine\\n" % row.number for row in rows)

def make():
    return Fragile()
"""


@pytest.fixture
async def environment(tmp_path: Path, words: TextTokenizer) -> dict[str, str]:
    """A key store and a tokenizer, as the settings name them."""
    (tmp_path / "tokenizer").mkdir()
    words.backend.save(str(tmp_path / "tokenizer" / "tokenizer.json"))
    write_whole(tmp_path / "kek", KeyEncryptionKey.generate_text().encode())
    store = open_store(f"sqlite:///{tmp_path / 'keys.db'}")
    ring = KeyRing(store, KeyEncryptionKey.from_text((tmp_path / "kek").read_text()))
    profile = Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": words.fingerprint})
    await ring.create("k", tenant="a", profile=profile)
    await store.close()
    return os.environ | {
        "TTMARK_STORE_URL": f"sqlite:///{tmp_path / 'keys.db'}",
        "TTMARK_KEK_FILE": str(tmp_path / "kek"),
        "TTMARK_TOKENIZERS": str(tmp_path / "tokenizer"),
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    generator = random.Random(1)
    path = tmp_path / "in.jsonl"
    with path.open("w") as file:
        for number in range(ROWS):
            text = " ".join(f"w{generator.randrange(200)}" for _ in range(300))
            file.write(json.dumps({"id": number, "text": text}) + "\n")
    return path


def start(source: Path, out: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ttmark.services", "detect", "--bulk", str(source), "--out", str(out)]
    return subprocess.Popen([*command, "--workers", "1"], env=environment, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> None:
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()


@pytest.mark.long
@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_killed_run_goes_on_and_ends_like_one_that_was_not(source, environment, kills):
    whole, out = source.with_name("whole.jsonl"), source.with_name("out.jsonl")
    partial = source.with_name("out.jsonl.partial")
    finish(start(source, whole, environment))
    generator, killed = random.Random(2), 0
    while killed < kills:
        written = partial.stat().st_size if partial.exists() else 0
        process = start(source, out, environment)
        if generator.random() < 0.7:  # most of the kills while lines are written, the others while starting
            while process.poll() is None and (not partial.exists() or partial.stat().st_size <= written):
                time.sleep(0.002)
        else:
            time.sleep(generator.uniform(0.0, 1.5))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        killed += 1
        if out.exists():
            break
    if not out.exists():
        finish(start(source, out, environment))
    assert out.read_bytes() == whole.read_bytes()
    assert len(whole.read_text().splitlines()) == ROWS


def test_a_row_that_kills_its_process_costs_no_other_row_its_result(tmp_path, monkeypatch):
    (tmp_path / "fragile_examiner.py").write_text(POISON)
    monkeypatch.syspath_prepend(str(tmp_path))
    from fragile_examiner import make

    contents = [b"a", b"b", b"poison", b"c"]
    rows = [InputRow(number, content) for number, content in enumerate(contents)]
    with Workers(1, make) as pool:
        lines = pool.result(rows, pool.submit(rows)).decode().splitlines()
        after = pool.result(rows[:1], pool.submit(rows[:1]))
    assert [line.endswith("fine") for line in lines] == [True, True, False, True]
    assert json.loads(lines[2])["error"] == "the process that examined this row died"
    assert after == b"0 fine\n"


def test_an_option_out_of_range_is_one_clear_line(source: Path, environment: dict[str, str]) -> None:
    command = ["detect", "--bulk", str(source), "--out", "x.jsonl", "--fpr", "7"]
    done = CliRunner().invoke(app, command, env=environment)
    assert done.exit_code == 1
    assert done.stderr.strip() == (
        "ttmark: fpr: a false positive rate is a number from 1e-100 to 0.1: at 0 nothing would ever be found"
    )
