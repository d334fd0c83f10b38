"""Whatever stands in a document: rows that add up, or an error that says what is wrong."""

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brokerlab.archive import merge, schema
from brokerlab.archive.contracts import key_columns
from brokerlab.archive.readers import detect, read
from brokerlab.errors import BrokerlabError
from tests.examples import examples

TIME = "2026-03-01T12:00:00"
DOCUMENTS: list[Any] = [
    {
        "A": {
            "nickname": "A", "status": "online", "type": "unified", "corecount": 8, "maxrss": "16000",
            "maxwdir": "x", "corepower": 10.0, "catchall": "per_core_attr", "releases": ["AUTO"],
            "params": {"max_io_intensity": 1}, "astorages": {"read_lan": ["X"], "write_lan_analysis": ["Y"]},
            "is_cvmfs": True, "last_modified": TIME,
        },
        "B": {"siteid": "B", "status": "test", "type": "analysis"},
    },
    {
        "A:B": {
            "closeness": {"latest": 1, "timestamp": TIME}, "mbps": {"dashb": {"1h": 1, "timestamp": TIME}},
            "files": {"queued": {"Express": {"latest": 1, "timestamp": TIME}}, "queued-total": 1,
                      "done": {"Express": {"1h": 1, "6h": 2, "timestamp": TIME}}, "done-total-1h": 1},
            "bytes": {"queued": {"Express": {"latest": 9, "timestamp": TIME}}, "queued-total": 9},
        },
        "B:A": {"closeness": {"latest": "2", "timestamp": TIME}},
    },
    {"A": {"RSE": {"A_DATADISK": "1.5", "A_DATATAPE": 0}, "GFLOPS": 7}, "B": {"RSE": {"A_DATADISK": "1.5"}}},
    {
        "transfers": {
            "key": {"src_site": 0, "dst_site": 1, "bytes_xs": 2, "files_xs": 3, "errors_xs": 4},
            "rows": [["A", "B", 1, 2, 3], ["B", "A", 0, 0, 1]],
        },
        "params": {"interval": 1440, "from_date": TIME, "to_date": "2026-03-02T12:00:00"},
    },
    {"A": {"cmtconfigs": ["x86_64-el9-gcc13-opt"], "tags": [{"tag": "t"}]}, "ALL": {"tags": [], "cvmfs": []}},
]  # fmt: skip
ODD: list[Any] = [
    None, True, -1, 0, 1.5, 1e308, 10**40, 2**63, float("nan"), float("inf"), "", "  ", "NULL", "1e400", "x" * 70_000,
    "\x00", "1970-01-01 00:00:00", "2026-01-01T00:00:00+25:00", [], {}, [None], [1, [2]], {"a": {"b": 1}},
]  # fmt: skip
NAMES = ["", "A:B", "*", "^x$", "__row", "status", "STATUS"]


def places(node: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every value inside a document."""
    inside = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    return [way, *(place for key, value in inside for place in places(value, (*way, key)))]


@st.composite
def spoilt(draw: st.DrawFn) -> Any:
    """Return a document in which values were replaced, renamed, or taken out."""
    document = copy.deepcopy(draw(st.sampled_from(DOCUMENTS)))
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(places(document)[1:] or [("x",)]))
        node = document
        for key in way:
            node = node[key]
        how = draw(st.sampled_from(["replace", "replace", "rename", "remove"]))
        if how == "replace" or not isinstance(node, dict) or last not in node:
            node[last] = copy.deepcopy(draw(st.sampled_from(ODD)))
        elif how == "rename":
            node[draw(st.sampled_from(NAMES))] = node.pop(last)
        else:
            del node[last]
    return document


@settings(
    max_examples=examples(150),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(document=spoilt())
def test_rows_add_up_or_an_error_says_why(tmp_path: Path, document: Any) -> None:
    path = tmp_path / "document.json"
    path.write_text(json.dumps(document))
    try:
        batches = list(read(path, detect(path)))
    except BrokerlabError:
        return
    for batch in batches:
        assert len(batch.rows) == len(batch.frame)
        assert batch.refused["reason"].str.len_chars().gt(0).all()
        assert batch.refused["reason"].null_count() == 0
        # only a matrix names its own columns, so only there a whole column can be wrong
        expected = BrokerlabError if batch.table == "transfers" else ()
        about = {"source": "document.json", "rows": batch.rows}
        try:
            good, bad = schema.sift(batch.table, batch.frame, **about)
        except expected:
            continue
        assert len(good) + len(bad) == len(batch.frame)
        kept, _ = merge.split(batch.table, batch.frame, **about)
        assert len(kept) == good.select(key_columns(batch.table)).n_unique()
