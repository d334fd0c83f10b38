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
# # How should a workflow be submitted to a batch queue?
#
# A workflow of many tasks can go to a batch queue as one job, as a job per task, or level by level; levels can be grouped
# into pilot jobs that wait while the one before them runs. This notebook runs recorded workflows in every way, from the
# same states of queues with the background load of real logs, under two readings of the rule that groups levels, and
# compares turnaround, waiting and waste. It writes a page, its numbers, tables and charts to `out_dir`.
#
# Run it here, or as `brokerlab report workflow-pilots -p data=../shared/data`. Without logs it generates a load and
# workflows, and says so.

# %% tags=["parameters"]
archive: str = ""  # archive whose busiest queue is one more machine, empty for none [path]
data: str = ""  # folder with swf-logs and wfinstances, empty for $BROKERLAB_DATA [path]
workflows: list[str] = []  # files of workflows below data, empty for the usual five [path]
policies: list[str] = ["easy", "conservative", "fcfs"]  # of one log, others the first [name]
strategies: list[str] = []  # compared besides the four needed, empty for the usual [name]
times: int = 30  # random instants at which workflows are submitted, per machine [1]
stretch: float = 1.0  # factor on the run times of tasks [1]
load: float = 0.7  # load of machines whose number of hosts is not known: sets it [1]
workers: int = 2  # processes [1]
store: str = ""  # folder where finished parts are kept and found again, empty for none [path]
n_boot: int = 1000  # bootstrap replicates over instants [1]
seed: int = 1  # seed of the instants, of what is generated and of the bootstrap [1]
out_dir: str = "out/workflow-pilots"  # where everything goes [path]

# %% [markdown]
# ## Load and check

# %%
import altair as alt

from brokerlab.charts import theme
from brokerlab.report import workflow_pilots as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
report.check(
    policies=policies,
    strategies=strategies,
    times=times,
    stretch=stretch,
    load=load,
    workers=workers,
    n_boot=n_boot,
    seed=seed,
)

# %%
inputs = report.load(
    data=data,
    archive=archive,
    workflows=workflows,
    policies=policies,
    stretch=stretch,
    load=load,
    seed=seed,
)
inputs.facts

# %%
inputs.summary()

# %% [markdown]
# ## Compare

# %%
study = report.study(
    inputs,
    **({"strategies": strategies} if strategies else {}),
    times=times,
    workers=workers,
    store=store,
    n_boot=n_boot,
    seed=seed,
)
study.by_queue

# %% [markdown]
# What the two rule sets do, workflow by workflow:

# %%
study.rules

# %% [markdown]
# ## Write page content, charts and tables

# %%
results = report.write(study, out_dir)
for part in results["page"]["parts"]:
    print(f"{part['verdict']['subject']}: {part['verdict']['sentence']}")

# %% [markdown]
# ## The pictures behind the answers

# %%
for drawer in (report.pictures.where, report.pictures.gantt, report.pictures.waits):
    drawn = drawer(study)
    if drawn is not None:
        display(drawn[0])
