# Each target sets up its own environment in .venv first; nothing else is needed but Python >= 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# More than the two cores that CI has: tests wait for servers, browsers and other processes.
TEST_WORKERS ?= 3
# What is imported is compiled then: compiling all of PyTorch, SciPy and the others takes longer than installing them.
PIP = pip install --disable-pip-version-check --no-compile
PIP_INSTALL = $(PIP) --quiet
PYTEST = pytest -n $(TEST_WORKERS) --dist worksteal --durations=15
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test check slow fragile lint bench images core integrations suite v010 docs tutorials package package-core lowest clean

help:
	@echo "make demo   set up and run the demo"
	@echo "make test   set up and run the tests"
	@echo "make check  everything CI runs: lint, types, imports, tests"
	@echo "make slow   the statistical tests that take minutes, with how long they take"
	@echo "make fragile  the tests as other processors would decide them; lists what changes (FRAGILE=--help)"
	@echo "make bench  the benchmarks"
	@echo "make images  the pictures of the docs"
	@echo "make suite  CrashBO beside other optimizers, in an environment of its own (hours; goes on where it stopped)"
	@echo "make v010   CrashBO 0.1.0 from its wheel in an environment of its own, for the suite to compare with"
	@echo "make docs   the documentation, into site/; tutorials are run, and anything outdated or missing fails"
	@echo "make tutorials  the tutorials that need PyTorch, ngspice, PostgreSQL or Ray, in an environment of their own"
	@echo "make package  wheel and sdist, installed into clean environments with every extra"
	@echo "make core   every module and some tests of every package, in an environment without torch"
	@echo "make lowest  the same tests with the lowest versions that pyproject.toml allows, on Python 3.11"
	@echo "make integrations  the tests of Ax and Ray, in an environment of their own"

# What `pip install crashbo` gives comes first: it takes seconds and is all that the demo needs.
$(VENV)/.core: pyproject.toml
	@echo "1. Making an environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "2. Installing CrashBO and what it needs (about 100 MB to download)"
	@$(BIN)/$(PIP) -e .
	@touch $@

$(VENV)/.ready: $(VENV)/.core constraints.txt
	@echo "3. Installing all extras and the tools for tests (about 1.2 GB with PyTorch)"
	@$(BIN)/$(PIP) -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(VENV)/.core
	@echo "Tuning a simulated robot"
	@$(BIN)/crashbo demo

test: $(VENV)/.ready
	$(BIN)/$(PYTEST) -m "not slow"

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

slow: $(VENV)/.ready
	$(BIN)/$(PYTEST) -m slow --timeout 3600

# FRAGILE passes options, as in: make fragile FRAGILE="--only perturb-1,nehalem -- tests/model"
fragile: $(VENV)/.ready
	TEST_WORKERS=$(TEST_WORKERS) $(BIN)/python -m tests.fragile $(FRAGILE)

# What `pip install crashbo` gives, the console's extra and the test tools: no torch, Numba or MuJoCo. Every module is
# imported there, and a test file or two of every package run. The rest of the tests do the same as in `make test`.
CORE_TESTS = tests/test_extras.py tests/test_optimizer.py tests/test_minimization.py tests/test_small_mistakes.py \
	tests/problem/test_space.py tests/model/test_inference.py tests/model/test_map.py tests/search/test_own.py \
	tests/search/test_gain.py tests/show/test_figures.py tests/show/test_report.py tests/adapters/test_extras.py \
	tests/adapters/optuna/test_sampler.py tests/store/test_recording.py tests/store/test_storage.py \
	tests/research/reproduce/test_figures.py tests/console/test_app.py \
	tests/console/test_worker.py tests/cli/test_record.py tests/cli/test_studies.py
$(VENV)-core/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-core
	$(VENV)-core/bin/$(PIP_INSTALL) -e '.[console,test]'
	@touch $@

core: $(VENV)-core/.ready
	$(VENV)-core/bin/python .ci/without_torch.py
	$(VENV)-core/bin/$(PYTEST) -m "not slow" $(CORE_TESTS)

# The same tests with the lowest versions that pyproject.toml allows, and more of what depends on them. Those versions
# warn of what newer versions of their own dependencies are going to drop.
LOWEST_PYTHON ?= $(shell python3.11 -c 'print("python3.11")' 2>/dev/null || echo $(PYTHON))
LOWEST_TESTS = $(CORE_TESTS) tests/model/test_threads.py tests/cli/test_manage.py tests/cli/test_reproduce.py
$(VENV)-lowest/.ready: pyproject.toml .ci/lowest.py
	$(LOWEST_PYTHON) -m venv $(VENV)-lowest
	$(LOWEST_PYTHON) .ci/lowest.py console test >$(VENV)-lowest/lowest.txt
	$(VENV)-lowest/bin/$(PIP_INSTALL) -c $(VENV)-lowest/lowest.txt -e '.[console,test]'
	@touch $@

lowest: $(VENV)-lowest/.ready
	$(VENV)-lowest/bin/$(PYTEST) -m "not slow" -W ignore::DeprecationWarning $(LOWEST_TESTS)

# Ax and Ray are heavy: an environment of their own. CI adds them to .venv, after its tests: nothing there changes.
INTEGRATIONS ?= $(VENV)-integrations
$(INTEGRATIONS)/.integrations: pyproject.toml constraints.txt
	test -x $(INTEGRATIONS)/bin/pip || $(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/$(PIP_INSTALL) -c constraints.txt -e '.[dev,ax,ray]'
	@touch $@

integrations: $(INTEGRATIONS)/.integrations
	$(INTEGRATIONS)/bin/pytest --durations=15 tests/adapters/test_ax.py tests/adapters/test_ray.py tests/adapters/test_extras.py

# The other optimizers are heavy too. SUITE passes options, as in: make suite SUITE="--seeds 0-4 --workers 2"
$(VENV)-suite/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-suite
	$(VENV)-suite/bin/$(PIP_INSTALL) -c constraints.txt -e '.[dev,suite]'
	@touch $@

suite: $(VENV)-suite/.ready
	$(VENV)-suite/bin/python -m benchmarks.suite run $(SUITE)
	$(VENV)-suite/bin/python -m benchmarks.suite table
	$(VENV)-suite/bin/python -m benchmarks.suite plots

# Version 0.1.0 is a method of the suite, crashbo-0.1.0: its wheel, built from its commit, with its own constraints, in
# its own environment. The suite looks for it there, wherever the other environments are.
V010 = .venv-v010
V010_COMMIT = c652665
$(V010)/.ready:
	$(PYTHON) -m venv $(V010)
	mkdir -p $(V010)/source
	git archive $(V010_COMMIT) | tar -x -C $(V010)/source
	$(V010)/bin/pip wheel --quiet --disable-pip-version-check --no-deps -w $(V010)/wheel $(V010)/source
	$(V010)/bin/$(PIP_INSTALL) -c $(V010)/source/constraints.txt \
		$(V010)/wheel/crashbo-0.1.0-py3-none-any.whl
	rm -r $(V010)/source
	@touch $@

v010: $(V010)/.ready

images: $(VENV)/.ready
	$(BIN)/python docs/make_images.py

# The site, without torch. Outputs on pages and light tutorials are made anew.
$(VENV)-docs/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/$(PIP_INSTALL) -e '.[docs]'
	@touch $@

docs: $(VENV)-docs/.ready
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --quiet

# Tutorials that are too heavy for every build: their outputs are kept in docs/tutorials/stored.
$(VENV)-tutorials/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-tutorials
	$(VENV)-tutorials/bin/$(PIP_INSTALL) -c constraints.txt -e '.[docs,postgres,ray]' torch
	@touch $@

tutorials: $(VENV)-tutorials/.ready
	$(VENV)-tutorials/bin/python docs/site/notebooks.py

# The package as users get it. `make package-core` is what CI runs, `make package` takes every other extra too.
PACKAGE = $(VENV)-package
dist: pyproject.toml README.md $(shell git ls-files src)
	rm -rf dist $(PACKAGE)-build
	$(PYTHON) -m venv $(PACKAGE)-build
	$(PACKAGE)-build/bin/$(PIP_INSTALL) build twine
	$(PACKAGE)-build/bin/python -m build --outdir dist .
	$(PACKAGE)-build/bin/twine check --strict dist/*

package-core: dist
	sh .ci/package.sh $(PYTHON) $(PACKAGE) ""
	sh .ci/package.sh $(PYTHON) $(PACKAGE) botorch

package: package-core
	for extra in console postgres robot mujoco ray ax; do sh .ci/package.sh $(PYTHON) $(PACKAGE) $$extra || exit 1; done

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/model.py
	$(BIN)/python benchmarks/ask.py
	$(BIN)/python -m benchmarks.suggestions
	$(BIN)/python benchmarks/pole.py
	$(BIN)/python benchmarks/console.py

clean:
	rm -rf $(VENV) $(VENV)-core $(VENV)-lowest $(VENV)-lowest $(VENV)-integrations $(VENV)-docs $(VENV)-tutorials $(VENV)-suite $(V010) .mypy_cache .ruff_cache .pytest_cache .hypothesis .cache site dist
