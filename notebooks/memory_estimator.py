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
data: str = ""  # folder of real data, empty for $BROKERLAB_DATA or ../shared/data [path]
archive: str = ""  # archive of hundreds of tasks, empty for data/demo where it is there [path]
seeds: list[int] = [1, 2, 3, 4, 5, 1996]  # random orders in which runs of traces arrive [1]
slow: bool = False  # run the published methods that take their time on traces, too
store: str = ""  # folder where their results are kept and found again, empty for none [path]
models: list[str] = []  # that learn, tested beside the hierarchy on jobs, empty for all [name]
level: float = 0.95  # of the upper bounds that are held against their promise [1]
n_boot: int = 2000  # bootstrap replicates [1]
seed: int = 1  # seed of the bootstrap
out_dir: str = "out/memory-estimator"  # where everything goes [path]

# %% [markdown]
# ## Load and check

# %%
import altair as alt

from brokerlab.charts import theme
from brokerlab.report import memory_estimator as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
report.check(seeds=seeds, level=level, n_boot=n_boot, seed=seed, models=models)

# %%
inputs = report.load(data=data, archive=archive)
inputs.facts

# %% [markdown]
# ## Estimate

# %%
study = report.study(
    inputs,
    seeds=seeds,
    slow=slow,
    store=store,
    names=models,
    level=level,
    n_boot=n_boot,
    seed=seed,
)

# %% [markdown]
# ## Write page content, charts and tables

# %%
results = report.write(study, out_dir)
for part in results["page"]["parts"]:
    print(f"{part['verdict']['subject']}: {part['verdict']['sentence']}")

# %% [markdown]
# ## The pictures behind the answers

# %%
for drawn in (
    report.pictures.frontier(study.tasks),
    report.pictures.ratios(study),
    report.pictures.frontier(study.archive),
):
    if drawn is not None:
        display(drawn[0])
