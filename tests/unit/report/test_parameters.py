"""Text from a command line becomes the declared type, or a sentence saying what was expected."""

import pytest

from brokerlab.errors import ConfigError
from brokerlab.report.parameters import convert, declared, resolve


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("3", "int", 3),
        (3.0, "int", 3),
        ("2", "float", 2.0),
        (2, "float", 2.0),
        ("TRUE", "bool", True),
        ("0", "bool", False),
        ("50,99", "list[int]", [50, 99]),
        ("[0.5, 1]", "list[float]", [0.5, 1.0]),
        ("", "list[str]", []),
        ("a, b", "list[str]", ["a", "b"]),
        ("1,x", "list", [1, "x"]),
        (range(3), "list[int]", [0, 1, 2]),
        ('{"waste": 1}', "dict", {"waste": 1}),
        ("data/demo", "str", "data/demo"),
    ],
)
def test_convert(text, kind, value):
    assert convert(text, kind) == value
    assert type(convert(text, kind)) is type(value)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("2.5", "int", "whole number"),
        (True, "int", "whole number"),
        ("many", "float", "must be a number"),
        (True, "float", "must be a number"),
        ("perhaps", "bool", "true or false"),
        (7, "str", "must be text"),
        ("50,x", "list[int]", "whole number"),
        ("[1, 2", "list[int]", "must be a list"),
        (7, "list[int]", "must be a list"),
        ("[1]", "dict", "JSON object"),
        ("{", "dict", "JSON object"),
    ],
)
def test_convert_refuses(text, kind, message):
    with pytest.raises(ValueError, match=message):
        convert(text, kind)


def test_declared_reads_type_default_and_meaning(notebooks):
    known = declared(notebooks / "toy.ipynb")
    names = ["archive", "rank", "share", "ranks", "strict", "seed", "reports", "out_dir"]
    assert list(known) == names
    assert (known["rank"].kind, known["rank"].default) == ("int", 75)
    assert known["ranks"].kind == "list[int]"
    assert known["ranks"].default == [50, 99]
    assert known["share"].meaning == "limit [1]"


def test_every_problem_at_once(notebooks):
    with pytest.raises(ConfigError) as caught:
        resolve({"a": 1, "b": 2, "rank": "x"}, declared(notebooks / "toy.ipynb"))
    assert str(caught.value).count(";") == 2
