"""No tenant waits for another's work: places, rows of a pass and cache rows are shared between tenants."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.fake_job import FakeJob, run
from ttmark.gen_service.engine.scheduling.kv_cache_rows import ExtentAllocator
from ttmark.gen_service.engine.scheduling.scheduler import PassPlan, Scheduler

PLACES, STEP_ROWS, CHUNK = 32, 512, 256


def scheduler(capacity: int = 100_000, **limits: int) -> Scheduler[FakeJob]:
    given_limits = {"max_sequences": PLACES, "step_rows": STEP_ROWS, "prefill_chunk": CHUNK} | limits
    return Scheduler(ExtentAllocator(capacity), **given_limits)


def step(on: Scheduler[FakeJob]) -> PassPlan[FakeJob]:
    plan = on.plan()
    run(plan, on)
    return plan


def crowd(on: Scheduler[FakeJob], count: int, tenant: str = "greedy", **shape: int) -> list[FakeJob]:
    jobs = [FakeJob(**({"prompt": 20, "token_limit": 1000} | shape), tenant=tenant) for _ in range(count)]
    for job in jobs:
        on.add(job)
    return jobs


def test_a_paused_sequence_keeps_its_rows_and_others_take_turns() -> None:
    jobs = scheduler(max_sequences=4)
    greedy = crowd(jobs, 4)
    step(jobs)
    crowd(jobs, 4, "modest")
    served: Counter[int] = Counter()
    for _ in range(40):
        served.update(map(id, step(jobs).works))
    assert jobs.preemptions == 0
    assert all(job.extent is not None for job in greedy)
    assert all(served[id(job)] in range(19, 23) for job in greedy)


def test_a_full_cache_is_given_back_by_those_who_hold_more_than_their_share() -> None:
    jobs = scheduler(capacity=6 * 300, growth_tokens=280)
    greedy = crowd(jobs, 64)
    step(jobs)
    assert jobs.reserved_rows == 6 * 300
    newcomer = FakeJob(20, 300, tenant="modest")
    jobs.add(newcomer)
    assert newcomer in step(jobs).works
    assert jobs.preemptions == 1
    assert greedy[0].extent is not None


def test_another_tenant_s_growth_takes_no_rows_from_a_newcomer() -> None:
    jobs = scheduler(capacity=1000, growth_tokens=20)
    crowd(jobs, 8, token_limit=900)
    step(jobs)
    newcomer = FakeJob(20, 300, tenant="modest")
    jobs.add(newcomer)
    for _ in range(285):
        step(jobs)
    assert newcomer.token_count == newcomer.token_limit
    assert newcomer.forgotten == 1  # at its end


def test_a_sequence_that_finds_no_rows_keeps_no_other_tenant_waiting() -> None:
    jobs = scheduler(capacity=1000, growth_tokens=20)
    crowd(jobs, 1, "long", prompt=600, token_limit=990)
    step(jobs)
    (large,) = crowd(jobs, 1, "large", prompt=600, token_limit=700)
    for _ in range(10):
        (small,) = crowd(jobs, 1, "small", prompt=5, token_limit=7)
        step(jobs)
        assert small in jobs.running
    assert large.extent is None


class Watch:
    """Rows that were served to tenants of whom something was paused all the time."""

    def __init__(self, on: Scheduler[FakeJob]) -> None:
        self.jobs = on
        self.lead: dict[tuple[str, str], list[int]] = {}

    def step(self) -> int:
        """The most that one tenant was served beyond another in any time in which both were paused."""
        before = {job.tenant for job in (*self.jobs.running, *self.jobs.waiting)}
        plan = self.jobs.plan()
        rows: Counter[str] = Counter()
        for job, work in plan.works.items():
            rows[job.tenant] += work.rows
        left_out = {job.tenant for job in self.jobs.running if job not in plan.works}
        assert plan.works or not before
        run(plan, self.jobs)
        pairs = {(a, b) for a in left_out for b in left_out if a < b}
        self.lead = {pair: self.lead.get(pair, [0]) for pair in pairs}
        worst = 0
        for (a, b), history in self.lead.items():
            history.append(history[-1] + rows[a] - rows[b])
            worst = max(worst, max(history) - min(history))
        return worst


ARRIVALS = st.lists(
    st.tuples(
        st.integers(0, 60),  # step
        st.sampled_from("abc"),
        st.integers(1, 40),  # prompt
        st.integers(1, 60),  # tokens
        st.sampled_from([0, 0, 3, 9]),  # rows of a probe
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=150)
@given(ARRIVALS, st.integers(1, 6), st.sampled_from([10, 20, 60]))
def test_tenants_who_are_paused_are_served_equally_whatever_comes(
    arrivals: list[tuple[int, str, int, int, int]], places: int, step_rows: int
) -> None:
    jobs = scheduler(max_sequences=places, step_rows=step_rows, prefill_chunk=8)
    watch = Watch(jobs)
    passes = 0
    while jobs.running or jobs.waiting or passes <= 60:
        for when, tenant, prompt, tokens, rows in arrivals:
            if when == passes:
                # A probe samples nothing, so it stands for a sequence that ends after its first tokens.
                jobs.add(FakeJob(prompt, prompt + tokens, tenant=tenant, probe_rows=rows, probes=tokens))
        # Pieces of work have at most 9 rows: one of each tenant, and what a pass held beside them.
        assert watch.step() <= step_rows + 2 * 9
        passes += 1
        assert passes < 5_000


@settings(max_examples=150)
@given(ARRIVALS, st.integers(1, 6), st.sampled_from([110, 150, 400]), st.sampled_from([2, 50]))
def test_no_sequence_waits_longer_than_for_the_work_of_those_in_hand(
    arrivals: list[tuple[int, str, int, int, int]], places: int, capacity: int, growth: int
) -> None:
    jobs = scheduler(
        capacity=capacity, max_sequences=places, step_rows=20, prefill_chunk=8, growth_tokens=growth
    )
    waits: dict[FakeJob, int] = {}
    passes = 0
    while jobs.running or jobs.waiting or passes <= 60:
        for when, tenant, prompt, tokens, _ in arrivals:
            if when == passes:
                job = FakeJob(prompt, prompt + tokens, tenant=tenant)
                waits[job] = 0
                jobs.add(job)
        plan = jobs.plan()
        for job in (*jobs.running, *jobs.waiting):
            waits[job] = 0 if job in plan.works else waits[job] + 1
            # Alone, a sequence takes at most 5 chunks and 60 tokens; a preemption repeats some of it.
            assert waits[job] <= 64 + 2 * 65 * len(arrivals)
        run(plan, jobs)
        passes += 1
        assert passes < 2 * 65 * len(arrivals) + 200
    assert jobs.reserved_rows == 0
