"""What is asked of the default question is asked of each of the paper's detectors."""

# ruff: noqa: F401
import pytest

from tests.unit.detect_service.test_bad_input import (
    test_a_malformed_body_is_a_problem,
    test_bad_input_is_a_problem_that_names_the_field,
    test_largest_token_ids_are_examined_under_a_key_whose_vocabulary_is_not_known,
    test_token_ids_outside_the_vocabulary_are_refused_with_its_bound,
)
from tests.unit.detect_service.test_detection_routes import (
    test_documents_in_which_nothing_is_found_feed_the_null_statistic_by_default,
    test_requests_are_timed_by_the_model_whose_keys_are_tried,
)
from tests.unit.detect_service.test_document_limits import (
    test_a_text_of_more_bytes_than_its_tokens_can_have_is_refused_unread,
    unread,
)
from tests.unit.detect_service.test_failing_documents import break_at, desk, test_every_route_sets_it_apart
from tests.unit.detect_service.test_pool import (
    test_a_caller_without_the_scope_learns_no_pool_key_and_no_payload,
    test_a_genuine_text_is_found_in_every_mode_on_its_own_key_alone,
    test_a_text_of_several_keys_fires_on_each_and_its_passages_alone_have_payloads,
)
from tests.unit.detect_service.test_readings import (
    test_without_evidence_the_number_of_tokens_does_not_tell_which_key_came_closest,
)
from tests.unit.detect_service.test_voices import test_a_finding_says_whose_words_carry_it


@pytest.fixture(
    params=[
        *(("direct", {}), ("direct", {"phase": 0}), ("aligned", {}), ("localized", {})),
        ("localized", {"method": "waterseeker"}),
    ]
)
def asked(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return request.param
