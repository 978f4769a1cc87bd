"""Examines rows with the code of the detection service; one examiner for each process."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from ttmark.detect_service.ask import ask_here
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.documents.backend import DetectionBackend
from ttmark.detect_service.features.bulk.row_format import InputRow, error_row, result_row
from ttmark.detect_service.features.manifests.manifest_examiner import ManifestExaminer
from ttmark.detect_service.features.manifests.stage import stage_of
from ttmark.detect_service.options import DetectionOptions
from ttmark.detect_service.question import Question
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.service_errors import ServiceError
from ttmark.shared.labels import Label
from ttmark.shared.schemas.detection.detect import DetectionResult, Document

_NO_REQUEST = "bulk"
_UNVERIFIED = ManifestExaminer(None, why_not="bulk runs verify no manifests")


@dataclass(frozen=True, slots=True)
class Examiner:
    """Rows in, lines of JSON out. `label`: what generated texts carry visibly, if anything."""

    backend: DetectionBackend
    tenant: str
    options: DetectionOptions
    label: Label | None = None

    def examine(self, rows: Sequence[InputRow]) -> bytes:
        """One line for each row, in order, whatever the rows hold."""
        return b"".join(orjson.dumps(row) + b"\n" for row in self.output_rows(rows))

    def output_rows(self, rows: Sequence[InputRow]) -> list[dict[str, Any]]:
        parsed = [(row.number, *row.parse()) for row in rows]
        results = iter(self._results([one for _, _, one in parsed if isinstance(one, Document)]))
        outputs = []
        for number, row_id, document in parsed:
            result = document if isinstance(document, str) else next(results)
            outputs.append(
                error_row(number, row_id, result)
                if isinstance(result, str)
                else result_row(number, row_id, result)
            )
        return outputs

    def _results(self, documents: list[Document]) -> list[DetectionResult | str]:
        """A result for each document, or what is wrong with it."""
        if not documents:
            return []
        caller = Principal(_NO_REQUEST, self.tenant, frozenset({Scope.DETECT, Scope.DETECT_EVIDENCE}))
        request = self.options.request(documents)
        try:
            means = means_of(self.backend).with_stages([stage_of(_UNVERIFIED, self.label)])
            response = ask_here(Question(request, caller, _NO_REQUEST), means)
            return [result.error.message if result.error else result for result in response.results]
        except Exception as error:  # whatever one document leads to must not cost the others their rows
            if len(documents) > 1:
                return [result for document in documents for result in self._results([document])]
            return [error.message if isinstance(error, ServiceError) else type(error).__name__]
