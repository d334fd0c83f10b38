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
# nothing.
#
# Run it here (paths then count from this folder: `../data/demo`), or as
# `brokerlab report waiting-rules -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder [path]
start: str = ""  # rules that fire from here on, empty for no bound [ISO 8601, UTC]
end: str = ""  # rules that fire from here on are left out, empty for no bound [ISO 8601, UTC]
rules: str = "document"  # rule set, document or production; compared with the other [name]
scales: list[float] = [0.25, 0.5, 0.75, 1, 1.5, 2]  # limits, so many times as long [1]
soon_h: float = 1.0  # a job that goes on within this after a rule was interrupted for nothing [h]
every: str = "6h"  # step of the instants at which fast rebrokerage is looked at [duration]
unit: str = "queue"  # what the bootstrap draws, queue or task [name]
n_boot: int = 1000  # bootstrap replicates [1]
seed: int = 1  # seed of the bootstrap
out_dir: str = "out/waiting-rules"  # where everything goes [path]

# %% [markdown]
# ## Load and check

# %%
import altair as alt

from brokerlab.charts import theme
from brokerlab.lifecycle.timeouts import decision_table
from brokerlab.report import waiting_rules as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
report.check(
    rules=rules,
    scales=scales,
    soon_h=soon_h,
    every=every,
    unit=unit,
    n_boot=n_boot,
    seed=seed,
    start=start,
    end=end,
)

# %%
inputs = report.load(
    archive, start=start, end=end, rules=rules, scales=scales, soon_h=soon_h, unit=unit
)
inputs.waiting.archive.summary()

# %% [markdown]
# The rules and their limits:

# %%
decision_table(rules=inputs.waiting.rules, config=inputs.waiting.config)

# %% [markdown]
# ## Judge the waiting

# %%
study = report.study(inputs, every=every, n_boot=n_boot, seed=seed)
study.by_rule

# %% [markdown]
# The same waits with other limits, rule by rule:

# %%
study.limits

# %% [markdown]
# ## Write page content, charts and tables

# %%
results = report.write(study, out_dir)
for part in results["page"]["parts"]:
    print(f"{part['verdict']['subject']}: {part['verdict']['sentence']}")

# %% [markdown]
# ## The pictures behind the answers

# %%
for drawer in (report.pictures.firing, report.pictures.limits):
    drawn = drawer(study)
    if drawn is not None:
        display(drawn[0])
