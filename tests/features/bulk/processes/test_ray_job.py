"""Bulk detection as a Ray Data job, on a local cluster of two nodes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import parquet

from ttmark.detect_service.features.bulk.ray_job import run_on_ray
from ttmark.detect_service.features.bulk.row_format import InputRow

ray = pytest.importorskip("ray", reason="Ray is an optional dependency")
MODULE = """
from ttmark.detect_service.documents.backend import DetectionBackend
from ttmark.detect_service.features.bulk.examiner import Examiner
from ttmark.detect_service.documents.backend import FixedKeys
from ttmark.detect_service.options import DetectionOptions
from ttmark.detect_service.documents.backend import TokenizerSet
from ttmark.shared.keys.held_keys import KeyState
from ttmark.shared.keys.held_keys import UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer

class Make:
    def __init__(self, folder):
        self.folder = folder

    def __call__(self):
        tokenizer = TextTokenizer.load(self.folder)
        fields = {"scheme": "synthid", "tokenizer_fingerprint": tokenizer.fingerprint}
        profile = Profile.model_validate(fields)
        version = UnlockedVersion(1, KeyState.PRIMARY, bytes(16))
        key = UnlockedKey(key_id="k", tenant="a", profile=profile, epoch=1, versions=(version,))
        backend = DetectionBackend(FixedKeys.of([key]), TokenizerSet([tokenizer]), 1000)
        return Examiner(backend, "a", DetectionOptions())
"""


@pytest.fixture
def two_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    from ray.cluster_utils import Cluster

    (tmp_path / "made_for_ray.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    cluster.add_node(num_cpus=2)
    yield cluster.address
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ray itself
def test_two_nodes_give_the_rows_of_one_process(tmp_path: Path, two_nodes: str, words) -> None:
    from made_for_ray import Make

    (tmp_path / "tokenizer").mkdir()
    words.backend.save(str(tmp_path / "tokenizer" / "tokenizer.json"))
    make = Make(str(tmp_path / "tokenizer"))
    lines = [json.dumps({"id": n, "text": f"w{n % 200} w1 w2 " * 60}) for n in range(500)]
    lines[7] = "not json"
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(lines) + "\n")
    assert run_on_ray(source, tmp_path / "out", make, address=two_nodes) == 500
    rows = parquet.read_table(tmp_path / "out").to_pylist()
    assert len(rows) == 500
    contents = [InputRow(number, line.encode()) for number, line in enumerate(lines)]
    examiner = make()
    expected = [
        row for start in range(0, 500, 100) for row in examiner.output_rows(contents[start : start + 100])
    ]
    assert sorted(map(str, rows)) == sorted(str({**row, "row": None}) for row in expected)
