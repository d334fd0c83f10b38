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
# numbers, tables and charts to `out_dir`.
#
# Run it here, or as `brokerlab report walltime-estimator -p data=../shared/data`. Without real data the archive alone answers,
# and the page says so.

# %% tags=["parameters"]
data: str = ""  # folder of real data, empty for $BROKERLAB_DATA or ../shared/data [path]
archive: str = ""  # archive, empty for data/demo where it is there [path]
estimators: list[str] = []  # models tried on grid tasks, hierarchy among them, empty for all [name]
max_jobs: int = 30000  # jobs taken of a batch log, the first by submission [1]
ids_per_s: float = 10.0  # jobs that the whole system creates: clock of tasks without times [1/s]
level: float = 0.95  # of the upper bounds that are held against their promise [1]
n_boot: int = 2000  # bootstrap replicates [1]
seed: int = 1  # seed of models and bootstrap
out_dir: str = "out/walltime-estimator"  # where everything goes [path]

# %% [markdown]
# ## Load and check

# %%
import altair as alt

from brokerlab.charts import theme
from brokerlab.report import walltime_estimator as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
report.check(
    estimators=estimators,
    max_jobs=max_jobs,
    ids_per_s=ids_per_s,
    level=level,
    n_boot=n_boot,
    seed=seed,
)

# %%
inputs = report.load(data=data, archive=archive, max_jobs=max_jobs, ids_per_s=ids_per_s)
inputs.facts

# %% [markdown]
# ## Estimate

# %%
study = report.study(inputs, estimators=estimators, level=level, n_boot=n_boot, seed=seed)

# %% [markdown]
# ## Write page content, charts and tables

# %%
results = report.write(study, out_dir)
for part in results["page"]["parts"]:
    print(f"{part['verdict']['subject']}: {part['verdict']['sentence']}")

# %% [markdown]
# ## The pictures behind the answers

# %%
for drawer in (report.pictures.frontier, report.pictures.errors, report.pictures.power):
    drawn = drawer(study)
    if drawn is not None:
        display(drawn[0])
