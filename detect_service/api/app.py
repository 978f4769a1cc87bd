"""The detection service as an ASGI application."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from fastapi import FastAPI

from ttmark.detect_service.api.admission import Admission, Terms
from ttmark.detect_service.api.body_route import body_scopes
from ttmark.detect_service.api.features import Application, DetectionFeature, Provided
from ttmark.detect_service.api.metrics import DetectionMetrics, WorkMetrics
from ttmark.detect_service.api.problems import describe_problems
from ttmark.detect_service.api.routes import answers, detection_router, keys_router
from ttmark.detect_service.ask import Means
from ttmark.shared.http.app import AppOptions, beside, create_app
from ttmark.shared.http.health import Readiness


def create_detection_app(
    means: Means,
    options: AppOptions,
    *,
    readiness: Callable[[], Readiness],
    terms: Terms | None = None,
    features: Sequence[DetectionFeature] = (),
) -> FastAPI:
    """The questions and what one can ask with; errors, health and metrics.

    Args:
        means: what is answered with, and by the stages of `features`.
        readiness: asked on each /readyz.
        terms: what questions cost; None: nothing.
        features: what stands beside, each after those that it needs.
    """
    terms = terms or Terms()
    means = means.with_stages(feature.stage for feature in features if feature.stage is not None)
    admission = Admission(means.backend, terms, WorkMetrics(options.registry))
    metrics = DetectionMetrics(options.registry, means.backend.tokenizers.models)
    answer = answers(means, metrics, options.audit, admission)
    options = replace(options, run_long=admission.run_long)
    provided = Provided(thing for feature in features for thing in feature.provides)
    application = Application(means, admission, answer, metrics, options, readiness, provided)
    parts = [feature.part(application) for feature in features]
    routes = [
        detection_router(answer, admission),
        keys_router(means.backend, options.limits),
        *(router for part in parts for router in part.routes),
    ]
    of_path = {path: limits for part in parts for path, limits in part.limits.items()}
    options = replace(
        options,
        limits=replace(options.limits, of_path=of_path),
        lifespan=beside(options.lifespan, [run for part in parts for run in part.background]),
        body_scopes=body_scopes(routes),
    )
    app = create_app(options, title="TTMark detection", error_style="problem", readiness=readiness)
    for router in routes:
        app.include_router(router)
    describe_problems(app)
    return app
