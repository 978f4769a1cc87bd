"""A document is too short for a verdict when the correction that was applied leaves nothing possible."""

import numpy as np
import pytest

from ttmark.detect_service.best_reading import best_reading
from ttmark.detect_service.decision import Decision, decide
from ttmark.detect_service.detectors import Tokens
from ttmark.detect_service.direct_detector import direct
from ttmark.detect_service.pipeline import Finding, best_findings
from ttmark.shared.keys.records import KeyState
from ttmark.shared.keys.unlocked import UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.profile import Profile

BLOCKS = 20
CONTEXT = 4


def key(name: str, block_size: int) -> UnlockedKey:
    """A key whose blocks have one fair bit each: 20 of them reach 2^-20 and no less."""
    profile = Profile.model_validate(
        {
            "scheme": "synthid",
            "block_size": block_size,
            "context_width": CONTEXT,
            "parameters": {"depth": 1},
            "tokenizer_fingerprint": "0" * 64,
        }
    )
    version = UnlockedVersion(1, KeyState.PRIMARY, name.encode().ljust(16))
    return UnlockedKey(key_id=name, tenant="a", profile=profile, epoch=1, versions=(version,))


def finding(keys: list[UnlockedKey], tokens: Tokens) -> Finding:
    (found,) = best_findings(lambda _: [tokens], keys, direct(["any"])) or [None]
    assert found is not None
    return found


@pytest.fixture
def tokens() -> Tokens:
    return np.random.default_rng(2).integers(0, 1000, size=BLOCKS + CONTEXT)


def test_a_key_that_could_have_been_found_makes_a_text_long_enough(tokens: Tokens) -> None:
    # Two keys with one and two phases: the p-values of the first are multiplied by 2, not by 3.
    found = finding([key("one", 1), key("two", 2)], tokens)
    assert found.hypotheses == 3
    assert decide(found, 2.5 * 2.0**-BLOCKS) == Decision("not_detected", None)
    assert decide(found, 1.9 * 2.0**-BLOCKS) == Decision("too_short", BLOCKS + CONTEXT + 1)


def test_a_key_that_could_not_have_been_found_is_corrected_for_its_own_phases(tokens: Tokens) -> None:
    # Ten blocks at either phase; their p-values are multiplied by 2.
    found = finding([key("two", 2)], tokens)
    assert decide(found, 2.1 * 2.0 ** -(BLOCKS // 2)).verdict == "not_detected"
    assert decide(found, 1.9 * 2.0 ** -(BLOCKS // 2)) == Decision("too_short", BLOCKS + CONTEXT + 2)


def test_a_second_reading_is_part_of_the_correction(tokens: Tokens) -> None:
    found = finding([key("one", 1)], tokens)
    assert decide(found, 1.5 * 2.0**-BLOCKS).verdict == "not_detected"
    _, both = best_reading([found, found], 1e-2)
    assert decide(both, 1.5 * 2.0**-BLOCKS).verdict == "too_short"
    assert decide(both, 2.1 * 2.0**-BLOCKS).verdict == "not_detected"
