"""Run every benchmark: ``python -m benchmarks [--jobs N]``."""

from benchmarks import classes, scouts

if __name__ == "__main__":
    scouts.main()
    classes.main()
