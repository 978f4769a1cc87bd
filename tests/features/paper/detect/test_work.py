"""What questions of the paper's detectors cost, and that interruptions change none of their answers."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.detect_service.conftest import Service
from tests.unit.detect_service.test_work import (
    test_answers_are_the_same_to_the_byte_when_the_work_is_interrupted,  # noqa: F401
)
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.cost import request_cost
from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.key_selection import KeySelection
from ttmark.shared.schemas.detection.detect import (
    AlignedRequest,
    DetectionRequest,
    DirectRequest,
    Document,
    LocalizedRequest,
)

KINDS: dict[str, tuple[type[DetectionRequest], dict[str, Any]]] = {
    "direct": (DirectRequest, {"phase": "any"}),
    "aligned": (AlignedRequest, {}),
    "aligned with decoys": (AlignedRequest, {"beta": 4.0}),
    "scan": (LocalizedRequest, {}),
    "waterseeker": (LocalizedRequest, {"method": "waterseeker"}),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> tuple[type[DetectionRequest], dict[str, Any]]:
    return KINDS[request.param]


def test_the_cost_counts_documents_versions_keys_of_a_pool_and_decoys(service: Service) -> None:
    one = service.keys["a-one"]

    def cost(name: str, tokens: int = 4_000, documents: int = 1, times: int = 1, pool: int = 1) -> int:
        key = replace(one, profile=one.profile.model_copy(update={"pool": pool}))
        of, options = KINDS[name]
        request = of(inputs=[Document(token_ids=[97])] * documents, **options)
        readers = [DocumentReader(document, ["as_sent"], 1.0) for document in request.inputs]
        method = means_of(service.backend).method_of(request)
        return request_cost(request, method, readers, KeySelection.of([key] * times), lambda *_: tokens)

    for name in ("direct", "aligned", "scan"):
        small, middle, large = (cost(name, pool=pool) for pool in (16, 256, 4096))
        assert large - middle == pytest.approx(16 * (middle - small), rel=0.01)
        assert 100 * cost(name) < middle < 256 * cost(name)
    assert cost("aligned", documents=20) > 8 * cost("aligned")
    assert cost("aligned", times=20) == pytest.approx(20 * cost("aligned"), rel=0.2)
    assert cost("aligned with decoys") > 8 * cost("aligned")
    assert cost("direct", tokens=40_000) > 5 * cost("direct")
