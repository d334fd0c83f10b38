"""A Spark session for the parity tests: one for all modules of a process; those of the carrier stop it and start one with workers of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from typing import Any

import pytest

OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # tiny tables: one partition, no generated code
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}


@pytest.fixture(scope="module")
def spark_builder() -> Any:
    """Return what makes a session; without Java or pyspark the test is skipped."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none")
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("Spark needs pyspark: the extra 'spark' is not installed")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers need our packages
    return SparkSession.builder


@pytest.fixture(scope="module")
def spark(spark_builder: Any) -> Any:
    builder = spark_builder.master("local[2]").appName("brokerlab-parity")
    for name, value in OPTIONS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
