# Every target sets up .venv by itself; `make report` and `make test` are the two to know.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
DEMO := data/demo
# those that decide what to set; `make reports` makes the others
DECIDING := scout-percentiles thresholds proposal-review
# few simulations of every setting, so that the answers are there after some minutes; for the same work twice as many bytes may be
# moved, as some waits for its nucleus, and 5 % of the core-hours used may be lost more, as the planted margin is wrong
QUICK := -p points=3 -p replications=2 -p most_replications=2 -p most_keys=2 -p rounds=0 -p screen_days=1 \
	-p 'limits={"moved_pct": 100, "lost_pct": 5}'
OTHERS := explore simulation-validation brokerage-replay analysis-replay site-classes waiting-rules network-curve workflow-pilots memory-estimator walltime-estimator
BROKERLAB_DATA ?= ../shared/data
BROKERLAB_ORACLE ?= tests/golden
export BROKERLAB_DATA BROKERLAB_ORACLE
# as many as CI has cores
PYTEST_WORKERS ?= 2

.PHONY: report reports demo test test-long oracle lint bench lab clean
.DEFAULT_GOAL := report

# pip 25.1 brought --group, which reads the dependency groups of pyproject.toml
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[lab,spark]" --group test --group lint
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/brokerlab synthesise --lived --jobs 120000 --days 14 --queues 100 --seed 1 --into $(DEMO)

report: demo
	$(BIN)/brokerlab report $(DECIDING) -p archive=$(DEMO) $(QUICK)

reports: demo
	$(BIN)/brokerlab report $(OTHERS) -p archive=$(DEMO)

# byte code is kept: without it workers, kernels and executors compile the library anew, each of them
test test-long: export PYTHONDONTWRITEBYTECODE =
# workers already fill the cores: threads of their own would only wait for each other
test: export POLARS_MAX_THREADS ?= 1
test: export OMP_NUM_THREADS ?= 1

test: $(STAMP)
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist worksteal -m "not long"

# statistical and attack runs over many repeats, and all that Spark carries; `make test` has a small version of each. Only files that have some are read.
# Then what compares two ways to one result once more, with all examples and with more threads than cores: nothing may depend on their order
test-long: $(STAMP)
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist worksteal -m long $$(grep -rl --include="*.py" "mark\.long" tests)
	EXAMPLES=all POLARS_MAX_THREADS=4 $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist worksteal -m "not long" tests/parity tests/property tests/unit/twins $$(grep -rl --include="*.py" "import examples" tests/unit)

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
