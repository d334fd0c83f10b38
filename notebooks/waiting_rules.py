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
# # Which waiting rules fire, how much waiting do they end, and would other limits have ended more of it?
#
# Jobs that wait too long are failed, killed or sent back to brokerage, each by a rule with a limit of its own. This
# notebook reads the histories of a period's jobs, says which rule would have fired when, what the jobs had waited until
# then, and what became of them; it judges the same waits with shorter and longer limits, looks at fast rebrokerage of
# queues and shares, and compares both rule sets. It writes a page, its numbers, tables and charts to `out_dir`; it proposes
# nothing. Run it here, or as `brokerlab report waiting-rules -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder [path]
out_dir: str = "out"  # where everything goes [path]
n_boot: int = 1000  # bootstrap replicates [1]
seed: int = 1  # seed of the bootstrap
start: str = ""  # only from this instant on, empty for all [ISO 8601, UTC]
end: str = ""  # only before this instant, empty for all [ISO 8601, UTC]
rules: str = "document"  # rule set, document or production [name]
scales: list = [0.25, 0.5, 0.75, 1, 1.5, 2]  # limits, so many times as long [1]
soon_h: float = 1.0  # who goes on within this is timed out needlessly [h]
every: str = "6h"  # step of fast rebrokerage [duration]
unit: str = "queue"  # what the bootstrap draws, queue or task [name]

# %%
import altair as alt

from brokerlab.charts import theme
from brokerlab.charts import waiting as charts
from brokerlab.lifecycle import waits as judge
from brokerlab.lifecycle.timeouts import decision_table
from brokerlab.report import kit
from brokerlab.report import waiting_rules as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
p = report.Params.of(globals())

# %% [markdown]
# ## What is in the archive
# The waiting of the period, and the rules with their limits:

# %%
data = report.load(p)
data.waiting.archive

# %%
decision_table(rules=data.waiting.rules, config=data.waiting.config)

# %% [markdown]
# ## By hand
# Every firing of the period is a row; any column can divide them.

# %%
fired = data.waiting.firings()
judge.wasted_waiting(fired, by=["rule", "jobstatus"])

# %% [markdown]
# ## Judge the waiting

# %%
study = report.study(data, p)
study.rules

# %% [markdown]
# One chart to edit: what all limits together would end and interrupt.

# %%
charts.limits_chart(judge.all_limits_changed(study.limits))

# %% [markdown]
# ## Write the page

# %%
results = kit.publish(report.page(data, study, p), p)
results["page"]["verdict"]["sentence"]
