# The generation service. Build arguments choose torch: its version, and the index that it comes from (empty: pip's own,
# whose build carries CUDA; CPU-only builds, a tenth of the size, have an index of their own).
FROM python:3.11.13-bookworm AS build
ARG TORCH="torch==2.13.0"
ARG TORCH_INDEX=""
WORKDIR /src
RUN python -m venv /opt/ttmark
COPY constraints.txt ./
RUN grep -v '^torch==' constraints.txt > /tmp/constraints.txt \
    && /opt/ttmark/bin/pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$TORCH"
COPY pyproject.toml README.md LICENSE ./
COPY services services
COPY gen_service gen_service
COPY detect_service detect_service
COPY evaluation evaluation
COPY library library
COPY shared shared
COPY ttmark ttmark
# The kernels are compiled for every level of processors: the image has no compiler, and runs on others than this one.
RUN /opt/ttmark/bin/pip install --no-cache-dir -c /tmp/constraints.txt ".[gen,detect,provenance]" \
    && /opt/ttmark/bin/python -P -m ttmark.gen_service.engine.native

FROM python:3.11.13-slim-bookworm
RUN useradd --uid 10001 --no-create-home ttmark && mkdir /models /state /audit && chown ttmark /models /state /audit
COPY --from=build /opt/ttmark /opt/ttmark
# A lost DNS query is repeated after a second; after the usual five, Redis has been given up (4 s).
ENV PATH=/opt/ttmark/bin:$PATH PYTHONUNBUFFERED=1 RES_OPTIONS="timeout:1 attempts:4"
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=5s --timeout=3s --start-period=120s --retries=5 \
    CMD ["python", "-m", "ttmark.services.healthcheck", "http://127.0.0.1:8000/readyz"]
CMD ["ttmark", "serve", "gen"]
