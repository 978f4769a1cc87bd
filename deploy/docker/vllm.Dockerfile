# The generation service on vLLM: vLLM's own image, with its CUDA and torch, and TTMark beside it.
FROM vllm/vllm-openai:v0.32.0
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /src
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY services services
COPY gen_service gen_service
COPY detect_service detect_service
COPY evaluation evaluation
COPY library library
COPY shared shared
COPY ttmark ttmark
# What the image has keeps its version; of the rest the locked versions are taken, Ray's among them, which joins several
# nodes and is not in vLLM's image any more.
RUN uv pip freeze --system | grep '==' > /tmp/there.txt \
    && awk -F '[=]=' '{name = tolower($1); gsub(/[-_.]+/, "-", name)} NR == FNR {seen[name]} NR == FNR || !(name in seen)' \
        /tmp/there.txt constraints.txt | grep -v '^#' > /tmp/constraints.txt \
    && uv pip install --system --no-cache -c /tmp/constraints.txt ".[gen,detect,provenance]" ray \
    && rm -r /src/* /tmp/there.txt /tmp/constraints.txt
# A user with a name, whom torch asks for, and a home for compiled kernels: /cache is a volume that programs may run from.
RUN useradd --uid 10001 --home-dir /cache ttmark && mkdir /models /state /cache /audit && chown ttmark /models /state /cache /audit
COPY deploy/vllm/engine.yaml /etc/ttmark/engine.yaml
# A lost DNS query is repeated after a second; after the usual five, Redis has been given up (4 s).
ENV TTMARK_ENGINE=vllm TTMARK_ENGINE_FILE=/etc/ttmark/engine.yaml HOME=/cache TORCHINDUCTOR_CACHE_DIR=/cache/torchinductor \
    TRITON_HOME=/cache VLLM_NO_USAGE_STATS=1 RAY_USAGE_STATS_ENABLED=0 PYTHONUNBUFFERED=1 RES_OPTIONS="timeout:1 attempts:4"
WORKDIR /cache
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=5s --timeout=3s --start-period=900s --retries=5 \
    CMD ["python3", "-m", "ttmark.services.healthcheck", "http://127.0.0.1:8000/readyz"]
# The base image starts vLLM's own server.
ENTRYPOINT []
CMD ["ttmark", "serve", "gen"]
