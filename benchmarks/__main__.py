"""Run every benchmark: ``python -m benchmarks [--jobs N]``."""

from benchmarks import brokerage, classes, estimator_speed, scouts, simulation, workflows

if __name__ == "__main__":
    scouts.main()
    classes.main()
    brokerage.main()
    simulation.main()
    workflows.main()
    estimator_speed.main()
