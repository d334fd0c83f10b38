"""Contracts of ``gshares``, ``gdpconfig`` and the archive's own ``quarantine`` table.

archive.md sections 9 and 10.
"""

import dataframely as dy

from brokerlab.archive.contracts._columns import f64, flag, i32, i64, json_text, text, ts

_ANY = "any"


class Gshares(dy.Schema):
    """Global shares (DB ``GLOBAL_SHARES``); a task takes the first leaf that matches."""

    name = text("share", key=True)
    value = f64("share of the parent", "%", required=True, low=0)
    parent = text("parent share", null="top")
    vo = text("regular expression", null=_ANY)
    prodsourcelabel = text("regular expression", null=_ANY)
    workinggroup = text("regular expression", null=_ANY)
    campaign = text("regular expression", null=_ANY)
    processingtype = text("regular expression", null=_ANY)
    transpath = text("regular expression", null=_ANY)
    rtype = text("regular expression", null=_ANY)
    queue_id = i32("work queue", null=_ANY)
    throttled = flag("throttled", null="no")


class Gdpconfig(dy.Schema):
    """Settings of the deployed system (DB ``CONFIG``); see gdpconfig.md."""

    app = text("application", loose_key=True, required=True)
    component = text("component", loose_key=True, required=True)
    key = text("key", loose_key=True, required=True)
    value = text("value", null="value_json is used")
    value_json = json_text("value as JSON", null="value is used")
    type = text("int, float, str, bool, json", required=True)
    vo = text("virtual organisation", loose_key=True, null=_ANY)
    descr = text("description", null="none")
    valid_from = ts("valid from", loose_key=True, null="always")
    valid_to = ts("valid until", null="no end")


class Quarantine(dy.Schema):
    """Rows that a reader refused, and findings between sources (not a PanDA table)."""

    source = text("file the row came from", required=True)
    row = i64("row in the source, first data row = 1", null="not tied to a row")
    table = text("table the row was meant for", required=True)
    key = text("key of the row, shortened", null="no key could be read")
    reason = text("why, all reasons joined with '; '", required=True)
