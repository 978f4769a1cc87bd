# Two commands matter: `make up` (run it) and `make test` (prove it).
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SYSTEM_PACKAGES := redis-server chromium prometheus prometheus-alertmanager minisign tesseract-ocr:tesseract

.PHONY: help up test test-long test-vllm stack-test stack-clean check docs audit lock frameworks soak soak-vllm mutate observe bench gpu release clean

help: ## Show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.run: pyproject.toml constraints.txt deploy/bootstrap.sh
	@PYTHON=$(PYTHON) deploy/bootstrap.sh run

$(VENV)/.dev: pyproject.toml constraints.txt deploy/bootstrap.sh
	@PYTHON=$(PYTHON) deploy/bootstrap.sh dev

up: $(VENV)/.run ## Start both services and chat; MODEL=demo|<hub id or folder> REDIS_URL=redis://... swap in other parts, UP_ARGS='--gen-port 8100 --detect-port 8101' other ports
	@exec $(BIN)/ttmark up $(if $(MODEL),--model '$(MODEL)') $(if $(REDIS_URL),--store-url '$(REDIS_URL)') $(UP_ARGS)

check: $(VENV)/.dev ## Lint, format and type checks, numbers of the documents, the site, known vulnerabilities
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tests.harness.figures
	@# Anew: a second build does not repeat the warnings of the first.
	@$(MAKE) --no-print-directory docs SITE_ARGS='--fresh-env --fail-on-warning --keep-going'
	@$(MAKE) --no-print-directory audit

docs: $(VENV)/.dev ## The documentation site, in build/site; open build/site/index.html
	@$(BIN)/sphinx-build --quiet $(SITE_ARGS) docs build/site

audit: $(VENV)/.dev ## Known vulnerabilities of the locked versions, where the data can be had (AUDIT_ARGS=--need-data: fail where not)
	@$(BIN)/python -m tests.harness.audit $(AUDIT_ARGS)

lock: $(VENV)/.dev ## Write the installed versions into constraints.txt
	@set -o pipefail; { echo "# Locked on $$(date -u +%F). Used by pip install -c. Renew it with: make lock"; \
	    $(BIN)/pip freeze --exclude-editable | sed -E 's/\+[A-Za-z0-9.]+$$//'; } > $(VENV)/constraints.new \
	    && mv $(VENV)/constraints.new constraints.txt

# In the order of the folders: the long files come first, and the processes end at about the same time. Three for two cores:
# who starts services waits for half of the time. Python keeps what it compiles: hundreds of processes are started. A process
# that crashes is not replaced: xdist waits for ever for the files that it had finished.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

test: $(VENV)/.dev ## Every promise to users, in minutes; installs what it needs from the system's packages where it is missing
	@deploy/system_packages.sh $(SYSTEM_PACKAGES)
	$(PYTEST) -m 'not slow and not long' $(PYTEST_ARGS)

test-long: $(VENV)/.dev ## The longer looks at the same promises: attackers' statistics, hostile files, overload, evaluation, what measures times
	@deploy/system_packages.sh $(SYSTEM_PACKAGES)
	$(PYTEST) -m 'long and not slow' $(PYTEST_ARGS)

VLLM := .venv-vllm
# Every engine starts a process that imports vLLM: 14 CPU seconds compiled, 37 where Python must not keep what it compiles.
VLLM_PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(VLLM)/bin/pytest -W default

$(VLLM)/.ready: pyproject.toml deploy/bootstrap_vllm.sh
	@PYTHON=$(PYTHON) deploy/bootstrap_vllm.sh

test-vllm: $(VLLM)/.ready ## The vLLM engine with the real vLLM on a CPU: its own tests, and the contract suite over it
	@# The description that test_openapi.py checks is the same with every engine.
	$(VLLM_PYTEST) tests/features/vllm/installed tests/contract/openai tests/features/*/openai --engine vllm -m 'not slow' \
	    --ignore tests/contract/openai/test_openapi.py -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart 0 $(PYTEST_ARGS)

soak-vllm: $(VLLM)/.ready ## The full tier of the vLLM engine: disconnects, faults, terminations, statistics (hours)
	$(VLLM_PYTEST) -m slow --timeout=0 tests/features/vllm/installed $(PYTEST_ARGS)

frameworks: $(VENV)/.dev ## Install the frameworks of docs/frameworks.md beside each other, and run each block of the page
	@deploy/frameworks.sh
	$(BIN)/pytest -n0 -m slow tests/integration/up/test_frameworks_page.py $(PYTEST_ARGS)

soak: $(VENV)/.dev ## The full tier of the statistical, fault and load tests (hours)
	@deploy/system_packages.sh $(SYSTEM_PACKAGES) haproxy
	OMP_NUM_THREADS=1 $(BIN)/pytest -m slow --timeout=0 $(PYTEST_ARGS)

mutate: $(VENV)/.dev ## Change sampled lines, one at a time, and see whether a test notices (about an hour; MUTATE_ARGS=--help)
	@deploy/system_packages.sh $(SYSTEM_PACKAGES)
	@$(BIN)/python -m tests.harness.mutation $(MUTATE_ARGS)

observe: $(VENV)/.dev ## Check every panel and rule against the running services and a real Prometheus
	@deploy/system_packages.sh $(SYSTEM_PACKAGES)
	$(BIN)/python -m tests.harness.observe

stack-test: $(VENV)/.dev ## Images, Compose and manifests run with Podman (as root, on Debian); MODEL=folder serves another than the demo model
	@$(BIN)/python -m tests.stack $(if $(MODEL),--model '$(MODEL)') $(STACK_ARGS)

stack-clean: $(VENV)/.dev ## Remove what stack-test made
	@$(BIN)/python -m tests.stack --clean

bench: $(VENV)/.dev ## Benchmarks beside their peers
	$(BIN)/ttmark bench --help

gpu: $(VENV)/.dev ## Everything that waits for a GPU, in parts, into build/gpu; without a GPU each part starts small
	@$(if $(GPU),[ -e $(VLLM)/.ready ] || PYTHON=$(PYTHON) deploy/bootstrap_vllm.sh gpu) || true
	@$(MAKE) --no-print-directory --keep-going $(GPU_PARTS:%=build/gpu/%)

# Each part is a file, of at most ten minutes: a second run takes those that are not there.
GPU := $(shell command -v nvidia-smi)
GPU_SEQUENCES := 1 8 32 128
GPU_PARTS = tests.log $(GPU_SEQUENCES:%=embedded-%.json) \
    $(if $(wildcard $(VLLM)/bin/python),vllm-tests.log $(GPU_SEQUENCES:%=vllm-%.json))
GPU_PART = mkdir -p build/gpu && timeout 600
GPU_LOAD = $(if $(GPU),--model $(or $(MODEL),smollm2) --sequences $* --tokens 128 --dtype bfloat16,--model demo \
    --sequences 2 --tokens 4 --dtype float32) --block-sizes 0,2 --filters chat --json $@

build/gpu/tests.log:
	$(GPU_PART) $(BIN)/pytest -n0 tests/gpu > $@.part && mv $@.part $@

build/gpu/vllm-tests.log:
	$(GPU_PART) $(VLLM)/bin/python -m pytest -n0 tests/features/vllm/installed/test_gpu.py > $@.part && mv $@.part $@

build/gpu/embedded-%.json:
	$(GPU_PART) $(BIN)/ttmark bench generate --no-synthid $(GPU_LOAD)

build/gpu/vllm-%.json:
	$(GPU_PART) $(VLLM)/bin/python -m ttmark.services bench vllm $(GPU_LOAD)

RELEASE := .venv-release

$(RELEASE)/.ready: deploy/release_tools.txt
	@$(PYTHON) -m venv $(RELEASE)
	@$(RELEASE)/bin/pip install -q --disable-pip-version-check -r deploy/release_tools.txt
	@touch $@

release: $(RELEASE)/.ready ## Wheel, sdist, images, bill of materials, notes, sums, signature in dist; KEY=minisign.key URL=https://... RELEASE_ARGS=--help
	@$(RELEASE)/bin/python -m tests.harness.release $(if $(KEY),--key '$(KEY)') $(if $(URL),--url '$(URL)') $(RELEASE_ARGS)

clean: ## Remove the virtual environments and caches (keys in .ttmark stay)
	rm -rf $(VENV) $(VLLM) $(RELEASE) .mypy_cache .ruff_cache .pytest_cache .hypothesis
