"""`python -m tests.harness.system_calls`, with strace: what both services call, and what may be called."""

import re
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.harness.every_request import ask_everything
from tests.harness.observe.services import Bed
from tests.harness.seccomp_run import allowed, read_profile

PROFILE = Path(__file__).resolve().parents[2] / "deploy/docker/seccomp.json"
_CALL = re.compile(r"^(?:\d+ +)?(?:<\.\.\. )?(\w+)(?:\(| resumed)")


def main() -> None:
    if shutil.which("strace") is None:
        sys.exit("strace is missing; it is Debian's package of that name")
    with tempfile.TemporaryDirectory(prefix="ttmark-calls-") as name:
        folder = Path(name)
        launcher = ["strace", "-D", "-ff", "-qq", "-e", "signal=none", "-s", "0", "-o", str(folder / "calls")]
        with Bed(folder / "bed", launcher=launcher) as bed:
            print(f"answered: {ask_everything(bed)}", file=sys.stderr)
            bed.wait_until_ready("canary")
        counts = _count(folder)
    known = set(allowed(read_profile(PROFILE)))
    for call, count in counts.most_common():
        print(f"{count:>9,}  {call}{'' if call in known else '  refused'}")


def _count(folder: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for path in folder.glob("calls.*"):
        for line in path.read_text(errors="replace").splitlines():
            if match := _CALL.match(line):
                counts[match[1]] += 1
    return counts


if __name__ == "__main__":
    main()
