# Every target sets up what it needs. `make` alone lists them.

VENV := .venv
PY := $(VENV)/bin/python
# The stamp's name is a checksum of what .venv was made from and of where it stands: a changed lock, a changed
# pyproject.toml or a moved folder has no stamp and is installed again.
STAMP := $(VENV)/installed-$(shell (pwd; cat requirements.lock pyproject.toml) | cksum | cut -d' ' -f1)
ALLOW_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)
TO_EXECUTE = $(wildcard notebooks/$(NB)*.ipynb)
ROOMS = $(sort $(notdir $(patsubst %/,%,$(dir $(wildcard tests/*/test_*.py)))))
STAGE = @printf '\n== %s ==\n'

export PYTHON
export PYTHONUNBUFFERED := 1

.DEFAULT_GOAL := help
.PHONY: help lab test unit matrix types data bench execute lock clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1@\2/p' Makefile | awk -F@ '{printf "%-16s %s\n", $$1, $$2}'

$(STAMP): ; @sh tools/make_venv.sh $(VENV) $@

lab: data  ## open the course in JupyterLab (LAB_FLAGS="--no-browser" adds flags)
	$(PY) -m jupyterlab --ip=127.0.0.1 $(ALLOW_ROOT) --ServerApp.root_dir="$(CURDIR)" \
		--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb $(LAB_FLAGS)

data: $(STAMP)  ## make the data files that the notebooks read
	@$(PY) -m helpers data

test: data  ## run every check: ruff, types, unit tests and doctests, then the notebooks
	$(STAGE) 'ruff: lint and format'
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	$(STAGE) 'mypy: what crosses a room or a process'
	@$(PY) -m mypy
	$(STAGE) 'pytest: unit tests, doctests, notebook hygiene'
	@$(PY) -m pytest tests helpers --doctest-modules
	$(STAGE) 'nbval: every notebook, every output'
	@if ls notebooks/*.ipynb >/dev/null 2>&1; then $(PY) -m pytest --nbval notebooks; \
	else echo 'There is no notebook in notebooks/ yet.'; fi

unit: data  ## run the unit tests and doctests alone; one room's: make unit ROOM=doctor
	@test -z "$(ROOM)" || ls tests/$(ROOM)/test_*.py >/dev/null 2>&1 || \
		{ echo 'There is no room "$(ROOM)"; the rooms are: $(ROOMS)'; exit 2; }
	@$(PY) -m pytest $(if $(ROOM),tests/$(ROOM) $(wildcard helpers/$(ROOM)),tests helpers) --doctest-modules

matrix: data  ## run the tests on every Python and in other surroundings; one row: make matrix ROW=3.12
	@$(PY) tools/matrix.py $(ROW) $(if $(VM),--vm "$(VM)")

types: $(STAMP)  ## check the types of what crosses a room or a process
	@$(PY) -m mypy

bench: data  ## measure against the peers and write benchmarks/RESULTS.md
	$(PY) -m benchmarks

execute: data  ## run notebooks again in place and clean them: make execute NB=05
	@test -n "$(NB)" || { echo 'Say which notebook: make execute NB=05'; exit 2; }
	@test -n "$(TO_EXECUTE)" || { echo 'No file in notebooks/ starts with "$(NB)".'; exit 2; }
	$(PY) -m nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False \
		--ExecutePreprocessor.timeout=600 $(TO_EXECUTE)
	$(PY) tools/clean_notebook.py $(TO_EXECUTE)
	$(PY) tools/readme_picture.py

lock:  ## compile requirements.lock from pyproject.toml (needs uv)
	@command -v uv >/dev/null || { echo 'make lock needs uv; install it and repeat.'; exit 2; }
	uv pip compile --universal --python-version 3.10 --generate-hashes --no-header --no-annotate \
		--extra course --extra dev pyproject.toml -o requirements.lock

clean:  ## remove what make made: .venv, the data files, the caches
	rm -rf $(VENV) .matrix build *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find data -mindepth 1 ! -name README.md -delete
	find . -name __pycache__ -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -prune -exec rm -rf {} +
