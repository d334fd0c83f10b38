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
# # How much memory should the next job get, and by which rule or model?
#
# A job that asks for too little memory is killed and runs again; one that asks for too much keeps others out. This notebook
# holds estimators against the rules that systems deploy: on traces of workflows, on whole tasks with the scouts they really
# had, and on an archive. It writes a page, its numbers, tables and charts to `out_dir`.
#
# Run it here, or as `brokerlab report memory-estimator -p data=../shared/data`. Without real data the archive alone answers,
# and the page says so.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder [path]
out_dir: str = "out"  # where everything goes [path]
n_boot: int = 2000  # bootstrap replicates [1]
seed: int = 1  # seed of the bootstrap
start: str = ""  # only from this instant on, empty for all [ISO 8601, UTC]
end: str = ""  # only before this instant, empty for all [ISO 8601, UTC]
rules: str = "document"  # rule set, document or production [name]
data: str = ""  # folder of real data, empty for $BROKERLAB_DATA or ../shared/data [path]
models: list = []  # that learn, tested beside the hierarchy on jobs, empty for all [name]
level: float = 0.95  # of the upper bounds that are held to it [1]

# %%
import altair as alt

from brokerlab.charts import primitives, theme
from brokerlab.estimators import trial_frames
from brokerlab.report import kit, results
from brokerlab.report import memory_estimator as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
p = report.Params.of(globals())

# %% [markdown]
# ## What there is to estimate
# Records of jobs, decided at submission: what was known of each, and what it used.

# %%
inputs = report.load(p)
for source in (inputs.tasks, inputs.later):
    if source:
        display(source["submit"].records.describe())

# %% [markdown]
# ## Estimate
# Every estimator on the same jobs: how often they exceed it, what it over-allocates, what retries cost.

# %%
study = report.study(inputs, p)
for part in study.jobs.values():
    display(trial_frames.every_estimator(part.main))

# %% [markdown]
# One chart to edit: every setting of every estimator.

# %%
for part in list(study.jobs.values())[:1]:
    points = trial_frames.frontier_points(part.main)
    chart = primitives.line(
        points.filter(points["exceed"] < 0.05),
        "over_allocation",
        "exceed",
        x_title="over-allocated [% of use]",
        y_title="jobs above their allocation [%]",
        colour="estimator",
        points=True,
    )
    display(chart)

# %% [markdown]
# What every estimator wastes on traces of workflow runs:

# %%
if study.traces is not None:
    display(study.traces)

# %% [markdown]
# ## The page, and the model beside it

# %%
written = kit.publish(report.page(inputs, study, p), p)
print(results.verdict_line(written["page"]["verdict"]))
