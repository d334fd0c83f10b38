"""What is compiled and kept by one process must not stand in for what another one kept."""

import subprocess
import sys

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
