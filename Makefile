# Everything lives in .venv, which the first target that needs it makes. Nothing outside this folder is touched.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules --no-print-directory

BIN := .venv/bin
# Tests wait for threads and terminals a third of their time: two of them share a core.
JOBS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1))))
UV := uv==0.13.9
DEMO := demo/tiny-llama

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Where compiled modules are not kept, every worker and every program that a test starts compiles them again.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

# A lock is installed as it stands: nothing is resolved, and what does not have the recorded hash is refused.
INSTALL_LOCK := -m pip install -qq --no-deps --require-hashes -r
INSTALL_TREE := -m pip install -qq --no-deps --no-build-isolation -e .

# Sets the shell variable `python` to the first interpreter that can make an environment, or says what is missing.
# pyenv leaves commands that only print an error, hence the trial runs.
define FIND_PYTHON
python=; old=; bare=; \
for candidate in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python); do \
  "$$candidate" -c '' >/dev/null 2>&1 || continue; \
  "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { old="$$old $$candidate"; continue; }; \
  "$$candidate" -c 'import ensurepip, venv' 2>/dev/null || { bare="$$candidate"; continue; }; \
  python="$$candidate"; break; \
done; \
if [ -z "$$python" ] && [ -n "$$bare" ]; then \
  echo "shardscope needs Python's venv module, and $$bare comes without it (Debian, Ubuntu: apt install python3-venv)." >&2; \
  exit 1; \
elif [ -z "$$python" ]; then \
  echo "shardscope needs Python 3.11 or later, and none was found$${old:+ (too old:$$old)}." >&2; \
  echo "Install one, or name it: make $(or $(MAKECMDGOALS),test) PYTHON=/path/to/python3" >&2; \
  exit 1; \
fi
endef

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# --- environments

$(BIN)/python:
	@$(FIND_PYTHON); \
	echo "making .venv with $$("$$python" --version) ..."; \
	"$$python" -m venv --clear .venv

.venv/.run: requirements.lock pyproject.toml $(BIN)/python
	@echo "installing shardscope into .venv ..."
	@$(BIN)/python $(INSTALL_LOCK) requirements.lock
	@$(BIN)/python $(INSTALL_TREE)
	@touch $@

.venv/.dev: requirements-dev.lock .venv/.run
	@echo "installing the tools of the checks into .venv ..."
	@$(BIN)/python $(INSTALL_LOCK) requirements-dev.lock
	@touch $@

.venv-wheel/.run: requirements.lock $(BIN)/python
	@$(BIN)/python -m venv --clear .venv-wheel
	@.venv-wheel/bin/python $(INSTALL_LOCK) requirements.lock
	@touch $@

.venv-nightly/.run: requirements-nightly.lock pyproject.toml $(BIN)/python
	@echo "making .venv-nightly with the tools of a night ..."
	@$(BIN)/python -m venv --clear .venv-nightly
	@.venv-nightly/bin/python $(INSTALL_LOCK) requirements-nightly.lock
	@.venv-nightly/bin/python $(INSTALL_TREE)
	@touch $@

# DeepSpeed's build asks for the torch that is already there, hence three steps. An older one lies in a folder of its own:
# tests/producers/test_silent_errors.py shows what it makes of a newer one's saves.
.venv-producers/.frameworks: requirements-producers.txt requirements-dev.lock $(BIN)/python
	@echo "making .venv-producers with torch and the frameworks (several GB) ..."
	@$(BIN)/python -m venv --clear .venv-producers
	@.venv-producers/bin/python $(INSTALL_LOCK) requirements-dev.lock
	@.venv-producers/bin/python -m pip install -q -c requirements-producers.txt torch setuptools wheel ninja
	@DS_BUILD_OPS=0 .venv-producers/bin/python -m pip install -q --no-build-isolation -r requirements-producers.txt
	@rm -rf .venv-producers/deepspeed-0.19.6
	@DS_BUILD_OPS=0 .venv-producers/bin/python -m pip install -q --no-deps --no-build-isolation \
	  --target .venv-producers/deepspeed-0.19.6 deepspeed==0.19.6
	@touch $@

.venv-producers/.run: .venv-producers/.frameworks pyproject.toml
	@.venv-producers/bin/python $(INSTALL_TREE)
	@touch $@

.PHONY: setup
setup: .venv/.dev ## make .venv with everything that the checks need

# --- use

demo/.made: tests/demo.py .venv/.run
	@$(BIN)/python tests/demo.py demo
	@touch $@

.PHONY: demo
demo: demo/.made ## open the explorer on a small checkpoint that this makes
	@echo "A damaged copy lies beside it: $(BIN)/shardscope $(DEMO)-damaged"
	@$(BIN)/shardscope $(DEMO)

.PHONY: inspect
inspect: demo/.made ## report on the same checkpoint without the explorer
	@$(BIN)/shardscope inspect $(DEMO)

# --- checks

.PHONY: test
test: .venv/.dev ## run the tests
	$(BIN)/python -m pytest -n $(JOBS) --maxprocesses 8

.PHONY: lint
lint: .venv/.dev ## check format, lint, types and import contracts
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Of the screens too: make coverage MEASURED='engine widgets app'
MEASURED ?= engine

.PHONY: coverage
coverage: .venv/.dev ## run the tests and measure branch coverage (engine/: at least 90 %)
	$(BIN)/python -m pytest -n $(JOBS) --maxprocesses 8 $(MEASURED:%=--cov=%) --cov-report=
	$(BIN)/coverage report
	$(BIN)/coverage report --include='engine/*' --fail-under=90

# Four workers that begin at once would each compile all tests for themselves. What is wrong with one is said when it runs.
.PHONY: compiled
compiled: .venv/.dev
	@$(BIN)/python -m pytest --collect-only -q >/dev/null 2>&1 || true

.PHONY: wheel
wheel: .venv/.dev .venv-wheel/.run ## build sdist and wheel, and use the wheel from outside this folder
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/check-wheel-contents --toplevel shardscope dist/*.whl
	.venv-wheel/bin/python -m pip install -qq --no-deps --no-index --force-reinstall dist/*.whl
	.venv-wheel/bin/python -P tests/installed.py tests/fixtures/hf/llama_sharded/checkpoint
	$(BIN)/python tests/release/sbom.py

.PHONY: site
site: .venv/.dev ## build the documents as a static site in site/, without network
	$(BIN)/python docs/build_site.py

.PHONY: check
check: .venv/.dev ## everything that a change must pass
	@$(MAKE) -j 2 lint wheel compiled
	@$(MAKE) site coverage

.PHONY: test-producers
test-producers: .venv-producers/.run ## run the tests that need torch, DeepSpeed, Megatron, transformers or dask
	.venv-producers/bin/python -m pytest -m producers tests/producers

MUTATIONS ?= 100000
EXECUTIONS ?= 100000
SECONDS ?= 60

.PHONY: fuzz
fuzz: .venv-nightly/.run ## fuzz every parser, for SECONDS=60 each, led by coverage; then mutate whole opcodes of pickles
	.venv-nightly/bin/python -m tests.fuzz --executions $(EXECUTIONS) --seconds $(SECONDS) --seed $(or $(SEED),0) $(PARSERS)
	.venv-nightly/bin/python tests/parse/fuzz_pickles.py $(MUTATIONS) $(SEED)

.PHONY: campaign
campaign: .venv/.dev ## kill, fill, starve and damage conversions many times (docs/reliability.md)
	$(BIN)/python -m tests.campaigns $(SCENARIOS)

.PHONY: bench
bench: .venv/.dev ## run the benchmarks (ratios, with their spread)
	@for script in $(filter-out %/__init__.py %/pairs.py,$(wildcard tests/benchmarks/*.py)); do \
	  echo "== $$script"; $(BIN)/python "$$script" || exit 1; \
	done

# --- releases

.PHONY: sbom
sbom: .venv/.dev ## write the bill of materials (CycloneDX) of what is pinned, without network
	$(BIN)/python tests/release/sbom.py

.PHONY: audit
audit: .venv-nightly/.run ## ask for advisories about what is pinned; exit 3 where none can be reached
	.venv-nightly/bin/python tests/release/audit.py

# For the interpreter and the platform that run this, unless WHEELHOUSE=--platform ... --python-version ... names others; the proof
# at the end is for the former.
WHEELHOUSE ?=

.PHONY: wheelhouse
wheelhouse: wheel ## dist/wheelhouse: everything that installs shardscope on a machine without network
	rm -rf dist/wheelhouse .venv-wheelhouse
	$(BIN)/python -m pip download -q --no-deps --only-binary :all: --require-hashes $(WHEELHOUSE) \
	  -d dist/wheelhouse -r requirements.lock
	cp dist/*.whl requirements.lock dist/wheelhouse
	$(if $(WHEELHOUSE),,$(BIN)/python -m venv --clear .venv-wheelhouse)
	$(if $(WHEELHOUSE),,.venv-wheelhouse/bin/python -m pip --isolated install -qq --no-index --no-cache-dir \
	  --find-links dist/wheelhouse shardscope)
	$(if $(WHEELHOUSE),,.venv-wheelhouse/bin/python -P tests/installed.py tests/fixtures/hf/llama_sharded/checkpoint)
	@rm -rf .venv-wheelhouse

# --- upkeep

.PHONY: format
format: .venv/.dev ## format the code and mend what the linter can mend
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

.PHONY: snapshots
snapshots: .venv/.dev ## draw the snapshots of the screens again
	$(BIN)/python -m pytest -n $(JOBS) --maxprocesses 8 --snapshot-update tests/app tests/widgets

.PHONY: docs
docs: .venv/.run ## write the generated pages of docs/ again
	$(BIN)/python docs/generate.py

# One lock holds for every platform and every Python from 3.11, and names no index.
COMPILE := .venv-lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

.PHONY: lock
lock: ## resolve the dependencies again and write the locks
	@test -x .venv-lock/bin/uv || { $(FIND_PYTHON); "$$python" -m venv --clear .venv-lock; }
	@.venv-lock/bin/python -m pip install -qq $(UV)
	$(COMPILE) --upgrade --group dev -o requirements-dev.lock pyproject.toml
	$(COMPILE) --upgrade --group build -c requirements-dev.lock -o requirements.lock pyproject.toml
	$(COMPILE) --upgrade --group build --group nightly -c requirements-dev.lock -o requirements-nightly.lock pyproject.toml

.PHONY: clean
clean: ## remove everything that was made here
	rm -rf .venv .venv-* demo build dist site htmlcov .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
