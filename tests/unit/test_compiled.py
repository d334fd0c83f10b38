"""What is compiled and kept by one process must not stand in for what another one kept, nor for what changed since."""

import pickle
import subprocess
import sys

from brokerlab import compiled

NAME = """
from brokerlab.compiled import numba
numba()
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


def test_numba_loads_with_the_first_call():
    run = "import sys; import brokerlab.report.runner, brokerlab.calibrate.simulation.kernel; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, check=True)  # noqa: S603
    assert done.stdout.strip() == b"False"


@compiled.compiled
def times(x, factor):
    return x * factor


def test_a_compiled_function_goes_to_other_processes_by_name():
    assert pickle.loads(pickle.dumps(times)) is times  # noqa: S301 - our own
    assert times(3, factor=2) == 6


def plus_one(x):
    return x + 1


def test_what_was_kept_is_compiled_anew_when_another_file_has_changed(monkeypatch):
    """What a function calls in other files is compiled into it; Numba looks at its own file alone."""

    def hits(digest):
        monkeypatch.setattr(compiled, "sources_digest", lambda _: digest)
        function = compiled.compiled(plus_one)
        assert function(1) == 2
        return sum(function.made.stats.cache_hits.values())

    assert [hits(digest) for digest in ("a", "a", "b", "b")][1:] == [1, 0, 1]


def test_what_is_compiled_in_is_looked_at_and_nothing_else(tmp_path, monkeypatch):
    package = tmp_path / "brokerlab"
    (package / "room").mkdir(parents=True)
    files = {
        "compiled": "",
        "kernel": "from brokerlab.compiled import compiled\nfrom brokerlab.room import (\n    inner,\n)\nfrom brokerlab.plain import HOUR",
        "room/inner": "from brokerlab.compiled import compiled\nfrom brokerlab.constants import DAY",
        "constants": "DAY = 24",
        "plain": "from brokerlab.page import WIDTH\nHOUR = 60",
        "page": "WIDTH = 3",
        "other": "from brokerlab.compiled import compiled",
    }

    def digest(**changed):
        for name, text in (files | changed).items():
            (package / f"{name}.py").write_text(text)
        return compiled.sources_digest.__wrapped__(package / "kernel.py")

    monkeypatch.setattr(compiled, "__file__", str(package / "compiled.py"))
    before = digest()
    for name in ("kernel", "room/inner", "constants", "plain"):
        assert digest(**{name: files[name] + "\n1"}) != before, name
    for name in ("page", "other"):
        assert digest(**{name: files[name] + "\n1"}) == before, name
