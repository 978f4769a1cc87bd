"""What is counted of jobs."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge

EVENTS = ("created", "deleted", "expired", "refused", "no_room")
DOCUMENT_OUTCOMES = ("answered", "failed")
CALL_OUTCOMES = ("taken", "failed", "given_up")


class JobMetrics:
    """Jobs by what became of them, documents by outcome, parts that were begun again, calls."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        self.jobs = counter("ttmark_jobs", "Jobs, by what became of them.", ["event"])
        self.documents = counter("ttmark_job_documents", "Documents of jobs that were answered.", ["outcome"])
        self.repeated_parts = counter(
            "ttmark_job_parts_repeated", "Parts that were begun again because their worker was gone."
        )
        self.calls = counter("ttmark_job_calls", "Attempts to tell that a job is finished.", ["outcome"])
        self.waiting = Gauge(
            "ttmark_job_documents_waiting",
            "Documents of jobs without an answer, over all replicas.",
            registry=registry,
        )
        for event in EVENTS:
            self.jobs.labels(event)
        for outcome in DOCUMENT_OUTCOMES:
            self.documents.labels(outcome)
        for outcome in CALL_OUTCOMES:
            self.calls.labels(outcome)
