"""Run every benchmark: ``python -m benchmarks [--jobs N]``."""

from benchmarks import scouts

if __name__ == "__main__":
    scouts.main()
