"""`ttmark` with faults that a file switches on: `python -m tests.harness.observe.faults serve gen`.

The files lie in the folder that TTMARK_FAULTS names:
    fault-stuck-engine   the next forward pass does not return while the file is there
    fault-broken-null    p-values of detection are the third root of what they should be
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ttmark.services.cli.main import app
from ttmark.shared.watermark import Watermark


def hang_while(marker: Path, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which does not begin while the file is there."""

    def hanging(*arguments: Any, **options: Any) -> Any:
        while marker.exists():
            time.sleep(0.05)
        return function(*arguments, **options)

    return hanging


def scale_while(marker: Path, function: Callable[..., float], factor: float) -> Callable[..., float]:
    """`function`, whose result is multiplied while the file is there."""

    def scaled(*arguments: Any, **options: Any) -> float:
        return function(*arguments, **options) * (factor if marker.exists() else 1.0)

    return scaled


def main() -> None:
    """The command line of `ttmark`."""
    folder = Path(os.environ["TTMARK_FAULTS"])
    if "gen" in sys.argv:
        from ttmark.gen_service.engine.runner import Runner

        Runner.forward = hang_while(folder / "fault-stuck-engine", Runner.forward)  # type: ignore[method-assign]
    log10_p = Watermark.log10_p_value
    Watermark.log10_p_value = scale_while(folder / "fault-broken-null", log10_p, 1 / 3)  # type: ignore[method-assign]
    app()


if __name__ == "__main__":
    main()
