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
# # How long does the next job run, and which rule or model should say so?
#
# A job that runs into its limit is lost; one that is given too much keeps its slot from others and waits longer for it. This
# notebook holds estimators of wall time against the rules that systems deploy: on batch logs, on whole tasks with the scouts
# they really had, and on an archive; and it measures what the core power of queues says of run times. It writes a page, its
# numbers, tables, charts and a model to `out_dir`.
#
# Run it here, or as `brokerlab report walltime-estimator -p data=../shared/data`. Without real data the archive alone answers,
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
max_jobs: int = 30000  # jobs taken of a batch log, the first by submission [1]
ids_per_s: float = 10.0  # jobs that the system creates: times of real tasks [1/s]

# %%
import altair as alt

from brokerlab.charts import primitives, theme
from brokerlab.report import kit, results
from brokerlab.report import walltime_estimator as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
p = report.Params.of(globals())

# %% [markdown]
# ## Whose run times
# Records of jobs by the clock of the decision, and batch logs; what was left out, and why:

# %%
data = report.load(p)
for sources in data.sources.values():
    display(sources["submit"].counts)
    display(sources["submit"].records.select("used", "cores", "events", "corepower").describe())

# %% [markdown]
# ## Estimate

# %%
study = report.study(data, p)
for guesses in study.guesses.values():
    display(guesses)

# %% [markdown]
# ## By hand
# Every setting of every estimator: how often jobs run into their limit, and what limits leave unused.

# %%
for part in study.jobs.values():
    best = part.main.curves.filter(answered=1.0).group_by("estimator", maintain_order=True)
    display(best.agg("setting", "exceed", "over_allocation"))

# %% [markdown]
# One chart to edit: how far every method on batch logs is off, over the best simple rule.

# %%
if study.logs is not None:
    chart = primitives.dots(
        study.logs.methods.sort("ratio"),
        "ratio",
        "method",
        title="mean error over that of the best simple rule [ratio]",
        panels="log",
        log=True,
    )
    display(chart)

# %% [markdown]
# ## The page, and the model

# %%
written = kit.publish(report.page(data, study, p), p)
print(results.verdict_line(written["page"]["verdict"]))
