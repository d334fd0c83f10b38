"""Workflow files: WfFormat, DAX, what is refused, and the public check figures of the recorded ones."""

import gzip
import json
import os
from pathlib import Path

import pytest

from brokerlab.errors import DataError
from brokerlab.workflows.dag import MissingRuntime, WorkflowError, workflow
from brokerlab.workflows.readers import describe_workflows, read_workflow

ROOT = Path(__file__).parents[3]
REAL = ROOT / os.environ.get("BROKERLAB_DATA", "../shared/data") / "wfinstances"


def task(name, parents=(), children=()):
    return {"name": name, "id": name, "parents": list(parents), "children": list(children)}


def newer(tasks, execution=None):
    flow = {"specification": {"tasks": tasks}}
    if execution is not None:
        flow["execution"] = {"tasks": execution}
    return {"name": "toy", "schemaVersion": "1.5", "workflow": flow}


@pytest.fixture
def written(tmp_path):
    def write(content, name="toy.json"):
        text = content if isinstance(content, str) else json.dumps(content)
        path = tmp_path / name
        data = text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


@pytest.mark.parametrize("name", ["toy.json", "toy.json.gz"])
def test_wfformat_1_5(written, name):
    document = newer(
        [task("a", children=["b"]), task("b", ["a"])],
        [{"id": "a", "runtimeInSeconds": 0, "coreCount": 5}, {"id": "b", "runtimeInSeconds": 2.5}],
    )
    flow = read_workflow(written(document, name), cores_per_host=2)
    assert (flow.name, flow.ids, flow.runtime) == ("toy", ("a", "b"), (0.0, 2.5))
    assert (flow.hosts, flow.parents) == ((3, 1), ((), (0,)))


def test_edges_told_by_one_side_alone_are_taken_and_reported(written):
    document = newer(
        [task("a", children=["b"]), task("b"), task("c", ["a"])],
        [{"id": n, "runtimeInSeconds": 1} for n in "abc"],
    )
    flow = read_workflow(written(document))
    assert flow.parents == ((), (0,), (0,))
    assert flow.findings == ("1 edges are told by the child alone, and taken: a -> c",
                             "1 edges are told by the parent alone, and taken: a -> b")  # fmt: skip


def test_without_an_execution_run_times_are_missing(written):
    path = written(newer([task("a")]))
    with pytest.raises(MissingRuntime, match="1 of 1 tasks"):
        read_workflow(path)
    assert read_workflow(path, default_runtime=60).runtime == (60.0,)


def test_wfformat_1_4_refers_by_name(written):
    tasks = [
        {"name": "first_1", "id": "1", "runtimeInSeconds": 3, "cores": 2, "children": ["second_2"]},
        {"name": "second_2", "id": "2", "runtimeInSeconds": 4},
    ]
    flow = read_workflow(written({"name": "old", "schemaVersion": "1.4", "workflow": {"tasks": tasks}}))  # fmt: skip
    assert (flow.ids, flow.hosts, flow.parents) == (("1", "2"), (2, 1), ((), (0,)))


def test_fields_that_are_missing_or_of_another_kind_are_told_at_once(written):
    document = newer([{"name": "a", "id": 5, "parents": []}], [{"id": "a", "runtimeInSeconds": -1}])
    with pytest.raises(DataError) as told:
        read_workflow(written(document))
    for part in ("'children' is a required property", "5 is not of type 'string'", "-1 is less than"):  # fmt: skip
        assert part in str(told.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"schemaVersion": "1.3"}, "'1.3'; read are 1.4, 1.5"),
        ("{", "no JSON"),
        ("jobs", "neither WfFormat"),
        ("<notdag/>", "a DAX has 'adag'"),
        ("<adag><job", "no XML"),
        ("<adag/>", "no tasks"),
        ("<adag><job id='a' runtime='soon'/><job/><child><parent/></child></adag>", "runtime 'soon' is no number.*job 2 has no id.*has no ref"),
        (newer([task("a"), task("a")], [{"id": "a", "runtimeInSeconds": 1}]), "stand more than once: a"),
        (newer([task("a")], [{"id": "x", "runtimeInSeconds": 1}]), "1 are no tasks of the workflow: x"),
    ],
)  # fmt: skip
def test_what_is_no_workflow_is_refused(written, content, told):
    with pytest.raises(DataError, match=f"(?s){told}"):
        read_workflow(written(content, "toy.dat"))


def test_dax(written):
    text = """<?xml version="1.0"?>
    <adag xmlns="http://pegasus.isi.edu/schema/DAX" jobCount="3" childCount="1">
      <job id="ID1" namespace="N" name="first" runtime="1.50"><uses file="f"/></job>
      <job id="ID2" name="second" runtime="2"/>
      <child ref="ID2"><parent ref="ID1"/></child>
    </adag>"""
    flow = read_workflow(written(text, "toy.dax"))
    assert (flow.ids, flow.runtime, flow.parents) == (("ID1", "ID2"), (1.5, 2.0), ((), (0,)))
    assert flow.findings == ("jobCount says 3, the file has 2",)


def test_a_byte_order_mark_before_a_workflow_is_no_part_of_it(written):
    for content, name in (
        ("<adag><job id='a' runtime='1'/></adag>", "toy.dax"),
        (json.dumps(newer([task("a")], [{"id": "a", "runtimeInSeconds": 1}])), "toy.json"),
    ):
        assert read_workflow(written("\ufeff" + content, name)).runtime == (1.0,)


def test_a_workflow_without_tasks_is_described():
    nothing = workflow([], [])
    assert describe_workflows({"nothing": nothing}).row(0) == ("nothing", 0, 0, 0, 0.0, 0.0)


def test_unknown_references_of_a_dax_are_refused(written):
    text = "<adag><job id='a' runtime='1'/><child ref='b'><parent ref='c'/></child></adag>"
    with pytest.raises(WorkflowError, match=r"(?s)edges.parent: .*c.*edges.child: .*b"):
        read_workflow(written(text, "toy.dax"))


def test_a_bomb_of_entities_is_refused(written):
    entities = '<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY a{i} "{"&a;" if i == 0 else f"&a{i - 1};" * 10}">' for i in range(9)
    )
    text = f"<?xml version='1.0'?><!DOCTYPE adag [{entities}]><adag>&a8;</adag>"
    with pytest.raises(DataError, match="document types and entities are not read"):
        read_workflow(written(text, "bomb.dax"))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        read_workflow(tmp_path / "nowhere.json")
    broken = tmp_path / "broken.json.gz"
    broken.write_bytes(gzip.compress(b"{}" * 100)[:-9])
    with pytest.raises(DataError, match="cannot be read"):
        read_workflow(broken)


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("file", "tasks", "depth"),
    [
        ("pegasus/montage/montage-chameleon-dss-075d-001", 178, 8),
        ("makeflow/blast/blast-chameleon-small-001", 43, 3),
        ("pegasus/soykb/soykb-chameleon-10fastq-10ch-001", 96, 11),
        ("nextflow/airrflow-dirt02-001", 212, 25),
    ],
)
def test_recorded_workflows(file, tasks, depth):
    path = REAL / f"{file}.json.gz"
    if not path.is_file():
        pytest.skip("real data 'wfinstances' is not here; set BROKERLAB_DATA")
    flow = read_workflow(path)
    assert (len(flow), len(flow.levels), flow.findings) == (tasks, depth, ())
