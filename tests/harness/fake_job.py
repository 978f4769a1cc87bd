"""A sequence made of numbers, for tests of the scheduler."""

from dataclasses import dataclass, field

from ttmark.gen_service.engine.scheduling.schedulable import Extent, Work
from ttmark.gen_service.engine.scheduling.scheduler import PassPlan, Scheduler


@dataclass(eq=False)
class FakeJob:
    """A sequence that samples one token per pass until it has `token_limit`.

    With `probe_rows` it samples nothing: it ends after `probes` passes, or never where that is 0.
    """

    prompt: int
    token_limit: int
    token_count: int = 0
    probe_rows: int = 0
    probes: int = 0
    tenant: str = "acme"
    repeatable: bool = False
    extent: Extent | None = None
    cached: int = 0
    reused: int | None = None
    prompt_cut: int = 8
    tokens: list[int] = field(default_factory=list)
    group_ends: list[int] = field(default_factory=list)
    forgotten: int = field(default=0)

    def __post_init__(self) -> None:
        self.token_count = self.prompt_length = self.prompt
        self.tokens = self.tokens or list(range(self.prompt))

    @property
    def most_reused(self) -> int:
        return self.token_count - 1

    def next_work(self, chunk: int, limit: int) -> Work:
        if self.probe_rows:
            return Work(self.probe_rows, self.cached)
        cached = (
            min(self.prompt, self.cached - self.cached % chunk + chunk)
            if self.cached < self.prompt
            else self.token_count
        )
        return Work(cached - self.cached, cached)

    def forget_cache(self) -> None:
        self.extent, self.cached = None, 0
        self.forgotten += 1


def run(step: PassPlan[FakeJob], on: Scheduler[FakeJob]) -> None:
    for job, work in step.works.items():
        assert job.extent is not None
        job.cached = work.cached
        assert job.cached <= job.extent.length
        job.probes -= 1
        if job.cached == job.token_count:
            job.token_count += 1
            job.tokens.append(0)
            job.group_ends.append(job.token_count)
        if job.token_count == job.token_limit or (job.probe_rows and job.probes == 0):
            on.remove(job)
