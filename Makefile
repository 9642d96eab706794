# Everything runs in the clone's own .venv, made when it is first needed and again when the project's files change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test lint types bench bench-g2p bench-translate bench-speed figures notebook clean

help:  ## what can be made
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/	/'

$(READY): pyproject.toml constraints.txt hatch_build.py $(wildcard src/regard/native/csrc/*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "regard needs Python 3.10 or newer; pass PYTHON=python3.x")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

demo: $(READY)  ## train, translate, explain and compare on built-in data, in four to five minutes
	$(BIN)/regard demo

test: $(READY)  ## run all tests, with coverage
	$(BIN)/python -m pytest -n auto --cov --cov-report=term

lint: $(READY)  ## check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## check types
	$(BIN)/mypy

bench: bench-g2p bench-translate bench-speed  ## all benchmarks; they need the data that REGARD_DATA names

bench-g2p: $(READY)  ## pronunciation in 15 languages (about 40 minutes on 2 cores)
	$(BIN)/python benchmarks/g2p.py

bench-translate: $(READY)  ## Chinese to English beside OpenNMT-py (about 45 minutes on 2 cores)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python benchmarks/translate.py

bench-speed: $(READY)  ## speed beside OpenNMT-py, fairseq and yoyodyne, in their own environments
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/memory.py

figures: $(READY)  ## run the comparisons of docs/from-seq2seq-to-attention.md
	$(BIN)/python docs/figures.py

notebook: $(READY)  ## run docs/from-seq2seq-to-attention.ipynb anew, and keep what it shows in it
	$(BIN)/jupyter execute --inplace docs/from-seq2seq-to-attention.ipynb

clean:  ## remove what make made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage demo-model
