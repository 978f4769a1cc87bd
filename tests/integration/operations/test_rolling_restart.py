"""The documented procedure of a rolling restart, under load."""

from pathlib import Path

import pytest

from tests.harness.observe.bed import Bed
from tests.harness.observe.restart import rolling_restart

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_no_client_request_fails_while_every_instance_is_replaced(tmp_path: Path, model: str) -> None:
    with Bed(tmp_path, model=model) as bed:
        outcome = rolling_restart(bed, clients=4)
    print(outcome)
    assert outcome.failures == []
    assert outcome.exit_codes == [0, 0, 0, 0]
    assert min(outcome.answered.values()) > 20
