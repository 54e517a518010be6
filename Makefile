# make serve   environment, package, default model, server on http://localhost:7997 (PORT=… changes the port)
# make test    everything needed to run the whole suite, and the suite
# make check   the static checks: ruff, mypy, import-linter, deptry, vulture
# make bench   side by side with peers, about 20 minutes (make bench-quick: 3)
# make test-clients  the real client packages against a real server (installs them; ARGS="openai cohere" for some)
# make test-openapi  schemathesis, every check, 20 000 requests against a real server (installs it; ARGS="--requests 2000")
# make fuzz    a million inputs guided by coverage, at everything that reads what comes from outside (INPUTS=…; Linux)
# make soak    faults, overload, health and steady work for half an hour each instead of half a minute (SECONDS=…)
# make parity  measures each row of the parity suite on each backend and writes the table in docs/models.md
# make clean   removes what the above created in this folder

PYTHON ?= python3
PORT ?= 7997
ARGS ?=
WORKERS ?= 2
SERVE := .venv
DEV := .venv-dev
PIP_FLAGS := --disable-pip-version-check
export PYTHONUTF8 := 1

.PHONY: help serve test check format docs bench bench-quick test-clients test-openapi fuzz soak parity clean

help:
	@sed -n '1,/^$$/s/^# //p' Makefile

# Byte code is made beforehand, and again after a change, since some environments forbid Python to keep it by itself.
COMPILE = -m compileall -q src

serve: $(SERVE)/.installed
	@$(SERVE)/bin/python $(COMPILE)
	@$(SERVE)/bin/infinity_emb v2 --port $(PORT) $(ARGS)

test: $(DEV)/.installed
	@$(DEV)/bin/python $(COMPILE)
	$(DEV)/bin/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

check: $(DEV)/.installed
	$(DEV)/bin/ruff check .
	$(DEV)/bin/ruff format --check .
	$(DEV)/bin/mypy
	$(DEV)/bin/lint-imports
	$(DEV)/bin/deptry src
	$(DEV)/bin/vulture

format: $(DEV)/.installed
	$(DEV)/bin/ruff check --fix .
	$(DEV)/bin/ruff format .

docs: $(DEV)/.installed
	$(DEV)/bin/python -m infinity_emb.cli.reference > docs/cli.md

bench bench-quick: $(DEV)/.installed
	@$(DEV)/bin/python $(COMPILE)
	$(DEV)/bin/python bench/run.py $(if $(filter bench-quick,$@),--quick) $(ARGS)

test-clients: $(DEV)/.installed
	$(DEV)/bin/python tests/clients/run.py $(ARGS)

test-openapi: $(DEV)/.installed
	$(DEV)/bin/python tests/openapi/run.py $(ARGS)

fuzz: $(DEV)/.fuzz
	$(DEV)/bin/python tests/fuzz/run.py --inputs $(or $(INPUTS),1000000) $(ARGS)

soak: $(DEV)/.installed
	INFINITY_TEST_CHAOS_S=$(or $(SECONDS),1800) $(DEV)/bin/python -m pytest tests/chaos -s $(ARGS)

parity: $(DEV)/.installed
	$(DEV)/bin/python tests/parity_table.py -n $(WORKERS) --dist loadfile $(ARGS)

clean:
	rm -rf $(SERVE) $(DEV) .venv-clients bench/.venvs bench/results .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage htmlcov

# The stamp makes the second start quick; a change of pyproject.toml installs again.
$(SERVE)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("infinity_emb needs Python 3.10 or newer, and %s is %s. Name another with PYTHON=…" % (sys.executable, sys.version.split()[0]) if sys.version_info < (3, 10) else 0)'
	@echo "Setting up $(SERVE): the server and what it needs (about 400 MB, without torch)"
	$(PYTHON) -m venv $(SERVE)
	$(SERVE)/bin/python -m pip install $(PIP_FLAGS) -e .
	@touch $@

$(DEV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("infinity_emb needs Python 3.10 or newer, and %s is %s. Name another with PYTHON=…" % (sys.executable, sys.version.split()[0]) if sys.version_info < (3, 10) else 0)'
	@echo "Setting up $(DEV): the server, the tools, and the reference libraries that results are compared with"
	$(PYTHON) -m venv $(DEV)
	$(DEV)/bin/python -m pip install $(PIP_FLAGS) --upgrade "pip>=25.1"
	$(DEV)/bin/python -m pip install $(PIP_FLAGS) -e ".[audio,onnxruntime,server,vision,zstd]" --group check --group test
	@touch $@

# Without a wheel, atheris would be built with a clang that few have; `python tests/fuzz/run.py --plain` needs neither.
$(DEV)/.fuzz: $(DEV)/.installed
	$(DEV)/bin/python -m pip install $(PIP_FLAGS) --only-binary atheris --group fuzz
	@touch $@
