"""`ttmark` with faults that a file switches on: `python -m tests.harness.observe.faults serve gen`.

The files lie in the folder that TTMARK_FAULTS names:
    fault-stuck-engine   the next forward pass does not return while the file is there
    fault-broken-null    p-values of detection are the third root of what they should be
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from ttmark.services.cli.main import app
from ttmark.shared.watermark import Watermark


def main() -> None:
    """The command line of `ttmark`."""
    folder = Path(os.environ["TTMARK_FAULTS"])
    if "gen" in sys.argv:
        from ttmark.gen_service.engine.runner import Runner

        forward = Runner.forward

        def hanging(*arguments: Any) -> Any:
            while (folder / "fault-stuck-engine").exists():
                time.sleep(0.05)
            return forward(*arguments)

        Runner.forward = hanging  # type: ignore[assignment, method-assign]
    log10_p = Watermark.log10_p_value

    def scaled(*arguments: Any) -> float:
        return log10_p(*arguments) / (3 if (folder / "fault-broken-null").exists() else 1)

    Watermark.log10_p_value = scaled  # type: ignore[assignment, method-assign]
    app()


if __name__ == "__main__":
    main()
