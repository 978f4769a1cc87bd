"""The process of a service, from outside."""

from tests.harness.served_and_stopped import serve_and_stop

CYCLE = """
class Cycle:
    def __init__(self): self.own = self
    def __del__(self): print("freed")
cycle = Cycle()
"""


def test_what_was_made_before_the_start_is_freed_at_the_end() -> None:
    """Libraries complain on standard error of what is still there when the interpreter has ended."""
    process = serve_and_stop(CYCLE)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == "freed\n"
