"""A document that fails inside, in a bulk run."""

import pytest

from tests.unit.detect_service.test_failing_documents import FAILING, WHY, Break
from ttmark.detect_service.fair_work.fair_queue import Abandoned
from ttmark.detect_service.features.bulk.examiner import Examiner
from ttmark.detect_service.features.bulk.row_format import InputRow
from ttmark.detect_service.options import DetectionOptions
from ttmark.shared.schemas.detection.detect import Document


@pytest.mark.parametrize("error", [Abandoned(), KeyboardInterrupt()])
def test_an_order_to_end_is_obeyed(service, break_at: Break, error: BaseException) -> None:
    break_at("shared.tokenization:TextTokenizer.encode", error)
    examiner = Examiner(service.backend, "a", DetectionOptions())
    with pytest.raises(type(error)):
        examiner.output_rows([row(0, FAILING)])


def row(number: int, text: str) -> InputRow:
    return InputRow(number, Document(text=text).model_dump_json(exclude_none=True).encode())


def test_in_a_bulk_run_it_has_a_row_that_says_so(service, break_at: Break) -> None:
    texts = ["a cat on a mat " * 20, FAILING, service.marked("a-one", 300)]
    break_at("detect_service.normalization.normalizer:TextNormalizer.readings")
    examiner = Examiner(service.backend, "a", DetectionOptions(keys=("a-one",)))
    rows = examiner.output_rows([row(number, text) for number, text in enumerate(texts)])
    assert [one["verdict"] for one in rows] == ["not_detected", None, "watermarked"]
    assert [one["error"] for one in rows] == [None, WHY["message"], None]
