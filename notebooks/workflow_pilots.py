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
out_dir: str = "out"  # where everything goes [path]
n_boot: int = 1000  # bootstrap replicates over instants [1]
seed: int = 1  # seed of the bootstrap
data: str = (
    ""  # folder with swf-logs and wfinstances, empty for $BROKERLAB_DATA or ../shared/data [path]
)
workflows: list = []  # files of workflows below data, empty for the usual five [path]
policies: list = ["easy", "conservative", "fcfs"]  # of one log, others the first [name]
strategies: list = []  # compared besides the four needed, empty for the usual [name]
times: int = 30  # random instants at which workflows are submitted, per machine [1]
stretch: float = 1.0  # factor on the run times of tasks [1]
load: float = 0.7  # load of machines whose number of hosts is not known [1]
workers: int = 2  # processes [1]
store: str = ""  # folder where finished parts are kept and found again, empty for none [path]

# %%
import altair as alt

from brokerlab.charts import theme
from brokerlab.charts import workflows as charts
from brokerlab.report import kit, results
from brokerlab.report import workflow_pilots as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
p = report.Params.of(globals())

# %% [markdown]
# ## What is compared
# Machines with their background load, and workflows:

# %%
inputs = report.load(p)
inputs.machines.describe()

# %%
report.describe_workflows(inputs.workflows)

# %% [markdown]
# ## Compare
# How many times as long every strategy takes as grouping by the paper's rules, queue by queue:

# %%
study = report.study(inputs, p)
study.by_queue

# %% [markdown]
# One chart to edit: what the rules of the notes do against those of the paper.

# %%
notes = study.by_queue.filter(strategy=report.NOTES).with_columns(label="system")
charts.turnaround_ratios(notes, of="notes' rule over paper's")

# %% [markdown]
# ## The page

# %%
written = kit.publish(report.page(inputs, study, p), p)
print(results.verdict_line(written["page"]["verdict"]))
