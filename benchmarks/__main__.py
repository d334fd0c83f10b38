"""Run every benchmark: ``python -m benchmarks [--jobs N]``."""

from benchmarks import brokerage, classes, estimators, scouts, simulation, workflows

if __name__ == "__main__":
    scouts.main()
    classes.main()
    brokerage.main()
    simulation.main()
    workflows.main()
    estimators.main()
