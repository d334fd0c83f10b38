"""Parsers take any text; batches say what single decisions say; the order of rows does not matter."""

from __future__ import annotations

import json
import re
import warnings
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.errors import BrokerlabWarning
from brokerlab.matching import (
    MatchingRules,
    PatternError,
    SoftwareQueue,
    SoftwareTask,
    compare_version,
    compile_pattern,
    decide_pairs,
    match_software,
    parse_architecture,
    parse_connectivity,
    parse_policy,
    read_catchall,
    software_pairs,
    zero_share,
)
from brokerlab.matching.description import DescriptionError, read_description

many = settings(derandomize=True, deadline=None, max_examples=200)
some = settings(derandomize=True, deadline=None, max_examples=40)

RULES = [MatchingRules("document"), MatchingRules("production")]
rule_sets = st.sampled_from(RULES)


def alike(*pieces: str) -> st.SearchStrategy[str]:
    """Texts of the pieces of a grammar, mixed with any others."""
    return st.lists(st.one_of(st.sampled_from(pieces), st.text(max_size=3)), max_size=8).map(
        "".join
    )


policies = alike(
    "type=", "group=", "gshare=", "priority", "any", "simul", "(", ")", "|", "*", "[", ":", ",", "0", "0%", ">", "=",
    "100%", " ", "500", "(?!x)",
)  # fmt: skip
architectures = alike(
    "x86_64", "aarch64", "-", "el9", "opt", "@", "#", "&", "^", "(", "|", ")", ".*", "nvidia", ":", "vram", ">=", "1",
    "model", "!=", "+", "[",
)  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5) | st.just("x86_64"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["arch", "vendor", "instr", "type", "model", "pattern", "excl", "vram", "version"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
REQUEST_KEYS = ["sw_platform", "base_platform", "cpu_specs", "gpu_spec", "cpu_pref"]
DESCRIPTION_KEYS = ["cmtconfigs", "containers", "cvmfs", "architectures", "tags"]
objects = st.dictionaries(st.sampled_from(REQUEST_KEYS), json_values, max_size=4).map(json.dumps)
broken = st.dictionaries(st.sampled_from(DESCRIPTION_KEYS), json_values, max_size=5).map(json.dumps)
texts = st.lists(st.sampled_from(["x86_64", "aarch64", "any", "excl", "", "intel"]), max_size=3)
sound = st.fixed_dictionaries(
    {
        "cmtconfigs": st.lists(st.sampled_from(["x86_64-el9-opt", "aarch64-el9-opt"]), max_size=2),
        "containers": st.lists(st.sampled_from(["any", "/cvmfs", "docker://a"]), max_size=2),
        "cvmfs": st.lists(st.sampled_from(["any", "atlas", "nightlies"]), max_size=2),
        "architectures": st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from(["cpu", "gpu"]), "arch": texts, "vendor": texts}
            ),
            max_size=2,
        ),
        "tags": st.just([]),
    }
).map(json.dumps)
requests = st.one_of(
    st.none(),
    architectures,
    objects,
    st.sampled_from(["x86_64-el9-opt", "(x86_64|aarch64)-el9-opt"]),
)
transhomes = st.sampled_from([None, "Athena-24.0.40", "Athena", "AtlasProduction-rel_3"])
containers = st.sampled_from([None, "", "docker://a/b"])


@many
@given(policies)
def test_policies_are_read_whatever_the_text(text: str) -> None:
    policy = parse_policy(text)
    assert ",".join(one.text for one in policy.subpolicies) == text
    for subpolicy in policy.subpolicies:
        assert text[subpolicy.position :].startswith(subpolicy.text)
        for clause in subpolicy.clauses:
            assert clause.key == "priority" or text[clause.position :].startswith(clause.text)
    assert all(0 <= note.position <= len(text) for note in policy.notes)
    zero_share(text, "simul", "AP_Higgs", "Express", 500)


@many
@given(st.one_of(architectures, objects, st.text(max_size=20)))
def test_architectures_are_read_whatever_the_text(text: str) -> None:
    request = parse_architecture(text)
    assert all(0 <= note.position <= len(text) for note in request.notes)
    if not request.is_json:
        assert text.startswith(request.sw_platform)


@many
@given(st.text(max_size=12), st.text(max_size=12))
def test_small_parsers_take_any_text(one: str, other: str) -> None:
    parse_connectivity(one)
    read_catchall(one, other)
    assert compare_version(one, other) in {True, False, None}


@many
@given(st.one_of(broken, st.text(max_size=8)), requests, transhomes, containers, rule_sets)
def test_a_decision_never_raises(
    data: str, text: str | None, transhome: str | None, name: str | None, rules: MatchingRules
) -> None:
    description, invalid = None, None
    try:
        description = read_description(data)
    except DescriptionError as error:
        invalid = str(error)
    queue = SoftwareQueue(("AUTO",), description, invalid)
    task = SoftwareTask.of(parse_architecture(text), transhome, name)
    match = match_software(task, queue, rules=rules)
    assert match.accept is (match.reason is None)
    assert (match.problem is not None) is (match.reason == "sw_description_invalid")


@many
@given(
    alike("a", "b", "(", ")", "|", "*", "+", "?", "[", "]", "^", "$", ".", "{2}", "{,1}", "\\d", "\\w", "(?:", "(?i)"),
    st.text("ab01A.\n", max_size=6),
)  # fmt: skip
def test_patterns_mean_what_python_says(expression: str, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            python = re.compile(expression)
        except (re.error, OverflowError):
            python = None
    try:
        pattern = compile_pattern(expression)
        answers = [pattern.search(text), pattern.match(text), pattern.fullmatch(text)]
    except PatternError as error:
        assert error.malformed is (python is None)  # noqa: PT017 - either outcome is right
        return
    assert python is not None
    wanted = [python.search(text), python.match(text), python.fullmatch(text)]
    assert answers == [found is not None for found in wanted]


tasks = st.tuples(
    st.sampled_from([None, "simul", "evgen", "ptest", "reco"]),
    st.sampled_from([None, "", "AP_Higgs", "AP_Susy\n"]),
    st.sampled_from([None, "Express", "Express Analysis"]),
    st.sampled_from([None, -1, 0, 499, 500, 501]),
    st.sampled_from([None, False, True]),
)
TASK_SCHEMA = {
    "processingtype": pl.String,
    "workinggroup": pl.String,
    "gshare": pl.String,
    "currentpriority": pl.Int64,
    "is_merging": pl.Boolean,
}


@some
@given(
    st.lists(st.one_of(st.none(), policies), max_size=6),
    st.lists(tasks, max_size=8),
    st.sampled_from([*RULES, MatchingRules(merge_priority="no_match")]),
)
def test_zero_share_of_a_batch_is_that_of_each_pair(
    texts: list[str | None], rows: list[Any], rules: MatchingRules
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)
        frame = decide_pairs(
            texts, pl.DataFrame(rows, schema=TASK_SCHEMA, orient="row"), rules=rules
        )
    assert frame.height == len(set(texts)) * len(set(rows))
    for policy, *task, merging, zero, index, reason, unreadable in frame.iter_rows():
        one = zero_share(policy, *task, merging=bool(merging), rules=rules)
        assert (one.zero_share, one.rule_index, one.reason, one.priority_error) == (
            zero,
            index,
            reason,
            unreadable,
        )


REQUEST_SCHEMA = {
    "architecture": pl.String,
    "transhome": pl.String,
    "container_name": pl.String,
    "onlytagsforfc": pl.Boolean,
}
releases = st.sampled_from([None, [], ["AUTO"], ["AUTO"], ["AUTO"], ["ANY"], ["AUTO", "ANY"]])


@some
@given(
    st.lists(
        st.tuples(requests, transhomes, containers, st.sampled_from([None, True])), max_size=5
    ),
    st.lists(st.tuples(releases, st.one_of(st.none(), sound, sound, broken)), max_size=5),
    rule_sets,
)
def test_software_of_a_batch_is_that_of_each_pair(
    rows: list[Any], offers: list[Any], rules: MatchingRules
) -> None:
    asked = pl.DataFrame(rows, schema=REQUEST_SCHEMA, orient="row")
    names = [f"Q{number}" for number in range(len(offers))]
    queues = pl.DataFrame(
        {"panda_queue": names, "releases": [listed for listed, _ in offers]},
        schema={"panda_queue": pl.String, "releases": pl.List(pl.String)},
    )
    published = {name: data for name, (_, data) in zip(names, offers, strict=True) if data}
    tags = pl.DataFrame(
        {"panda_queue": list(published), "data": list(published.values())},
        schema={"panda_queue": pl.String, "data": pl.String},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)
        frame = software_pairs(asked, queues, tags, rules=rules)
        mixed = software_pairs(asked.reverse(), queues.reverse(), tags.reverse(), rules=rules)
    assert frame.height == len(set(rows)) * len(offers)
    keys = [*REQUEST_SCHEMA, "panda_queue"]
    assert frame.sort(keys).equals(mixed.sort(keys))
    by_name = dict(zip(names, offers, strict=True))
    for (
        text,
        transhome,
        container,
        only,
        name,
        accept,
        reason,
        platform,
        weight,
    ) in frame.iter_rows():
        listed, data = by_name[name]
        queue = SoftwareQueue(tuple(listed or ()), read_description(data) if data else None)
        task = SoftwareTask.of(parse_architecture(text), transhome, container, only_tags=only)
        one = match_software(task, queue, rules=rules)
        assert (one.accept, one.reason, one.platform, one.preference_weight) == (
            accept,
            reason,
            platform,
            weight,
        )
