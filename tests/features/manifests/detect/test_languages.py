"""What is said of a manifest in each language."""

import pytest

from tests.unit.detect_service.test_languages import OTHERS
from ttmark.detect_service.features.manifests.manifest_examiner import with_manifests
from ttmark.shared.detection_words import message
from ttmark.shared.languages.words import words_of
from ttmark.shared.schemas.detection.detect import DetectionResult
from ttmark.shared.schemas.manifests import FoundManifest


@pytest.mark.parametrize("language", OTHERS)
def test_a_manifest_is_told_in_the_language(language: str) -> None:
    words = words_of(language)
    result = DetectionResult(id="a", verdict="not_detected", tokens=9, hypotheses=1)
    changed = FoundManifest(status="does_not_verify", reason="assertion.dataHash.mismatch")
    said = with_manifests(message(result, 1e-5, words), [changed], alone=True, words=words)
    assert said.language == language
    assert said.headline == words.say("manifest.headline")
    assert "assertion.dataHash.mismatch" in said.explanation
    assert words.say("none.headline") in said.explanation
