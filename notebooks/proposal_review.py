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
# # Which proposed settings are to be decided, and what would each of them do?
#
# Reports write proposals: documents that say which key of gdpconfig should have which value, what that was measured to
# do, and for whom. This notebook collects them for a meeting: what is proposed, from where to where, what it
# promises and how sure that is, who gains and who loses, what excludes what, whether the proofs still hold
# on a later archive, and the statements that put a decision in and take it back. Nothing to decide is a right result.
#
# It writes a page, its numbers and tables, and the files to apply to `out_dir`, whoever runs it: here, or as
# `brokerlab report proposal-review -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive whose gdpconfig acts where no config is given [path]
out_dir: str = "out"  # where everything goes [path]
proposals: str = "reports"  # folder of reports or of proposals, or one proposal [path of reports]
config: str = ""  # gdpconfig that acts now (CSV, JSON, archive), empty: archive's [path]
at: str = ""  # time of a gdpconfig with a history, empty for now [ISO 8601, UTC]
later: str = ""  # archive to ask whether the proposals still hold, empty for none [path]
only_newest: bool = True  # leave out what a later run of the same report has replaced

# %%
import altair as alt

from brokerlab.charts import theme
from brokerlab.gdpconfig.proposal import in_words, overview
from brokerlab.report import kit, results
from brokerlab.report import proposal_review as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
p = report.Params.of(globals())

# %% [markdown]
# ## Find, sort, compare, merge, ask

# %%
config = report.load(p)
study = report.study(config, p)
overview([item.filed for item in study.review.items], config)

# %%
[str(conflict) for conflict in study.review.conflicts]

# %% [markdown]
# ## By hand
# One proposal in words.

# %%
for item in study.review.items[:1]:
    print(in_words(item.filed, config))

# %% [markdown]
# ## The page

# %%
written = kit.publish(report.page(config, study, p), p)
print(results.verdict_line(written["page"]["verdict"]))
