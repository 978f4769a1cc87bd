"""Hand-made bad inputs on the routes of the paper's detectors."""

from tests.unit.detect_service.test_bad_input import (
    ONE,
    assert_problem,
)

OPTIONS: list[tuple[str, dict[str, object], str]] = [
    *(("aligned", {"beta": odd}, "full") for odd in (-1, 101, "five")),
    ("aligned", {"beta": 4.5}, "verdict"),
    ("localized", {"method": "guess"}, "full"),
    *((mode, {"conversation": True}, "full") for mode in ("direct", "aligned", "localized")),
]


async def test_options_are_refused_by_their_names(service) -> None:
    for mode, option, token in OPTIONS:
        await assert_problem(service, mode, ONE | option, token, param=next(iter(option)))
