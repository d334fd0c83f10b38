"""Is it hard to break: ``python -m benchmarks.attack --cases 10000 --kills 100 --damaged 230 --seed N``.

Files of every kind that is read are mutated and read again (`attack_files`); ingests are killed, interrupted and run out of room,
parts and manifests of archives are damaged, archives are read while they are written (`attack_archives`). A case holds if it ends
with rows that add up or with an error of ours that names the file in at most 2 kB, within 20 s. The table says what was tried and
what failed; the exit status is 1 where anything failed. Everything here is synthetic.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import polars as pl

from benchmarks import attack_archives
from benchmarks.attack_files import files
from brokerlab import worlds

FAILURES = ("foreign exception", "lost rows", "hang", "memory", "message", "silent damage")
"""What may fail."""


def main() -> None:
    """Attack, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000, help="mutated files")
    parser.add_argument("--kills", type=int, default=100, help="ingests that are killed")
    parser.add_argument("--damaged", type=int, default=230, help="archives with a damaged part")
    parser.add_argument("--others", type=int, default=30, help="cases of each other attack")
    parser.add_argument("--reports", type=int, default=3, help="reports that are ended by a signal")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder that gets the files that failed")
    asked = parser.parse_args()
    attacks = {
        "files": (lambda *given: files(*given, asked.keep), asked.cases),
        "kills": (attack_archives.kills, asked.kills),
        "damaged parts": (attack_archives.damage, asked.damaged),
        "lost manifests": (attack_archives.lost_manifests, asked.others),
        "interrupts": (attack_archives.interrupts, asked.others),
        "full disks": (attack_archives.full_disks, asked.others),
        "readers beside a writer": (attack_archives.readers, asked.others),
        "queries that write": (attack_archives.queries, 10 * asked.others),
        "reports that are ended": (attack_archives.reports, asked.reports),
    }
    total = 0
    table = []
    with tempfile.TemporaryDirectory() as text:
        source = Path(text) / "source"
        worlds.synthesise(source, jobs=3000, days=4, seed=asked.seed)
        for name, (attack, n) in attacks.items():
            folder = Path(text) / name.replace(" ", "-")
            folder.mkdir()
            failures: Counter[str] = Counter()
            begun = time.perf_counter()
            rng = random.Random(f"{asked.seed} {name}")  # noqa: S311 - repeatable, no secret
            for outcome in attack(source, folder, n, rng):
                failures[outcome.failure] += 1
                print(f"{outcome.failure}: {outcome.note}", flush=True)
            row = (name, n, *(failures[kind] for kind in FAILURES))
            table.append((*row, round(time.perf_counter() - begun)))
            print(*table[-1], flush=True)
            total += failures.total()
    with pl.Config(tbl_cols=-1, tbl_rows=-1, tbl_width_chars=160, tbl_hide_column_data_types=True):
        print(pl.DataFrame(table, schema=["attack", "tried", *FAILURES, "seconds"], orient="row"))
    print(f"{total} failed" if total else "all held")
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
