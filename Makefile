# Every target sets up .venv by itself; `make report` and `make test` are the two to know.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
DEMO := data/demo
REPORTS := explore scout-percentiles brokerage-replay analysis-replay site-classes waiting-rules network-curve simulation-validation thresholds workflow-pilots memory-estimator walltime-estimator proposal-review
BROKERLAB_DATA ?= ../shared/data
BROKERLAB_ORACLE ?= tests/golden
export BROKERLAB_DATA BROKERLAB_ORACLE
# as many as CI has cores
PYTEST_WORKERS ?= 2

.PHONY: report test oracle lint bench lab clean
.DEFAULT_GOAL := report

# pip 25.1 brought --group, which reads the dependency groups of pyproject.toml
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[lab,spark]" --group test --group lint
	touch $(STAMP)

report: $(STAMP)
	$(BIN)/brokerlab synthesise --jobs 200000 --days 28 --seed 1 --into $(DEMO)
	for name in $(REPORTS); do $(BIN)/brokerlab report $$name -p archive=$(DEMO) || exit 1; done

test: $(STAMP)
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist worksteal

oracle: $(STAMP)
	$(BIN)/python -m pytest tests/oracle -q -s

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

bench: $(STAMP)
	$(BIN)/python -m benchmarks

lab: $(STAMP)
	$(BIN)/jupyter lab notebooks

clean:
	rm -rf $(VENV) data/demo .pytest_cache .mypy_cache .ruff_cache
