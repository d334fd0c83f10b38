# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Which thresholds of the brokerage should be changed, and to what?
#
# Each threshold trades something: bytes moved against waiting, evenness against speed. This notebook asks of every key first
# whether any of its values changes any decision of this archive (cheap); of those that do, what other values would have led
# to, by simulating the grid with them; it searches the few that matter together, chooses under stated limits on one period
# and proves the choice on a later one. It first asks whether the simulation gives back what was seen: where it does not,
# nothing is simulated and nothing proposed. It writes a page, its numbers, tables, charts and a proposal to `out_dir`.
#
# Run it here (paths then count from this folder: `../data/demo`), or as
# `brokerlab report thresholds -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder [path]
keys: list[str] = []  # keys to look at, empty for all thresholds [gdpconfig key]
calibration_start: str = ""  # choice from here on, empty: archive's second day [ISO 8601, UTC]
proof_start: str = ""  # choice ends and proof begins, empty for half way to the end [ISO 8601, UTC]
end: str = ""  # proof ends, empty for the archive's last day [ISO 8601, UTC]
screen_days: float = 4  # days at the end of the choice that are screened [days]
points: int = 5  # values per key between its guard rails, the current one not counted [1]
objective: str = "turnaround_h"  # what is to be small, or waiting_h, moved_tb... [name]
limits: dict[str, float] = {}  # limits other than the defaults, by name, such as moved_pct [%]
relevant: float = 0.01  # smallest reduction that is worth a change, part of what is now [1]
alpha: float = 0.05  # rate of false proposals, intervals hold 1 - alpha [1]
replications: int = 4  # simulations of every setting [1]
most_replications: int = 12  # simulations of a setting at most [1]
trials: int = 12  # trials of the search over the keys that matter [1]
n_boot: int = 2000  # bootstrap replicates [1]
seed: int = 1  # seed of simulations, bootstrap and search
stage: str = "jobs"  # what is simulated, jobs (production) or analysis [name]
store: str = ""  # folder that keeps simulations: an interrupted run goes on; empty: none [path]
workers: int = 2  # processes for simulations, at most [1]
out_dir: str = "out/thresholds"  # where everything goes [path]

# %% [markdown]
# ## Check the parameters

# %%
from datetime import UTC, datetime

import altair as alt

from brokerlab.charts import theme
from brokerlab.report import thresholds as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
report.check(
    keys=keys,
    calibration_start=calibration_start,
    proof_start=proof_start,
    end=end,
    screen_days=screen_days,
    points=points,
    objective=objective,
    limits=limits,
    relevant=relevant,
    alpha=alpha,
    replications=replications,
    most_replications=most_replications,
    trials=trials,
    n_boot=n_boot,
    seed=seed,
    workers=workers,
    stage=stage,
)

# %% [markdown]
# ## Screen, validate, simulate, choose, prove

# %%
study = report.study(
    archive,
    created_at=datetime.now(UTC).replace(tzinfo=None, microsecond=0),
    keys=keys,
    calibration_start=calibration_start,
    proof_start=proof_start,
    end=end,
    screen_days=screen_days,
    points=points,
    objective=objective,
    limits=limits,
    relevant=relevant,
    alpha=alpha,
    replications=replications,
    most_replications=most_replications,
    trials=trials,
    n_boot=n_boot,
    seed=seed,
    store=store,
    workers=workers,
    stage=stage,
)
study.calibration.screened

# %% [markdown]
# ## Write page content, charts, tables and proposal

# %%
results = report.write(study, out_dir)
print(results["page"]["verdict"]["sentence"])

# %% [markdown]
# ## The pictures behind the answer

# %%
for drawer in (report.pictures.effects, report.pictures.pareto, report.pictures.screen):
    drawn = drawer(study)
    if drawn is not None:
        display(drawn[0])
