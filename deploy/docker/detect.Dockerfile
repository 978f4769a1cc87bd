# The detection service: no torch, no transformers.
FROM python:3.11.13-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/ttmark
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY services services
COPY gen_service gen_service
COPY detect_service detect_service
COPY evaluation evaluation
COPY library library
COPY shared shared
COPY ttmark ttmark
# The kernels are compiled for every level of processors: the image has no compiler, and runs on others than this one.
RUN /opt/ttmark/bin/pip install --no-cache-dir -c constraints.txt ".[detect,provenance]" \
    && /opt/ttmark/bin/python -P -m ttmark.shared.watermark.likelihood

FROM python:3.11.13-slim-bookworm
# Debian's packages that read pictures, and their languages: "tesseract-ocr tesseract-ocr-deu". None: pictures are refused.
ARG OCR_PACKAGES=""
# hadolint ignore=DL3008,SC2086
RUN [ -z "$OCR_PACKAGES" ] || { apt-get update && apt-get install -y --no-install-recommends $OCR_PACKAGES \
        && rm -rf /var/lib/apt/lists/*; }
RUN useradd --uid 10001 --no-create-home ttmark && mkdir /state /audit && chown ttmark /state /audit
COPY --from=build /opt/ttmark /opt/ttmark
# A lost DNS query is repeated after a second; after the usual five, Redis has been given up (4 s).
ENV PATH=/opt/ttmark/bin:$PATH PYTHONUNBUFFERED=1 RES_OPTIONS="timeout:1 attempts:4"
USER 10001
EXPOSE 8001
HEALTHCHECK --interval=5s --timeout=3s --start-period=15s --retries=5 \
    CMD ["python", "-m", "ttmark.services.healthcheck", "http://127.0.0.1:8001/readyz"]
CMD ["ttmark", "serve", "detect"]
