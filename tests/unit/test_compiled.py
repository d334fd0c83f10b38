"""What is compiled and kept by one process must not stand in for what another one kept, nor for what changed since."""

import subprocess
import sys

from brokerlab import compiled

NAME = """
import brokerlab.compiled
from numba.core.bytecode import FunctionIdentity
print(FunctionIdentity.from_function(lambda x: x).unique_id)
"""


def test_no_two_processes_give_compiled_pieces_one_name():
    """Names end in a number that Numba counts from 1: pieces of the same name, kept by two processes, are called for each other."""
    run = [sys.executable, "-c", NAME]
    first, second = (
        subprocess.run(run, capture_output=True, check=True).stdout  # noqa: S603
        for _ in range(2)
    )
    assert first.strip().isdigit()
    assert first != second


def plus_one(x):
    return x + 1


def test_what_was_kept_is_compiled_anew_when_another_file_has_changed(monkeypatch):
    """What a function calls in other files is compiled into it; Numba looks at its own file alone."""

    def hits(digest):
        monkeypatch.setattr(compiled, "sources_digest", lambda: digest)
        function = compiled.compiled(plus_one)
        assert function(1) == 2
        return sum(function.stats.cache_hits.values())

    assert [hits(digest) for digest in ("a", "a", "b", "b")][1:] == [1, 0, 1]


def test_files_with_compiled_functions_and_their_constants_are_looked_at(tmp_path, monkeypatch):
    package = tmp_path / "brokerlab"
    package.mkdir()
    files = {
        "compiled": "",
        "kernel": "from brokerlab.compiled import compiled\nfrom brokerlab.constants import DAY",
        "constants": "DAY = 24",
        "page": "WIDTH = 3",
    }

    def digest(**changed):
        for name, text in (files | changed).items():
            (package / f"{name}.py").write_text(text)
        return compiled.sources_digest.__wrapped__()

    monkeypatch.setattr(compiled, "__file__", str(package / "compiled.py"))
    before = digest()
    assert digest(constants="DAY = 23") != before != digest(kernel=files["kernel"] + "\n1")
    assert digest(page="WIDTH = 4") == before
