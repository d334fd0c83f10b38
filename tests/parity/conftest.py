"""A Spark session for the parity tests: one for all modules of a process; those of the carrier stop it and start one with workers of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from typing import Any

import pytest

# processes of a minute: code is compiled once and quickly, one thread collects what is not used
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.sql.session.timeZone": "UTC",
    # tiny tables: no generated code
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}


@pytest.fixture(scope="module")
def spark_builder() -> Any:
    """Return what makes a session with the common options; without Java or pyspark the test is skipped."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none")
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("Spark needs pyspark: the extra 'spark' is not installed")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers need our packages
    return SparkSession.builder.config(map=OPTIONS)


@pytest.fixture(scope="module")
def spark(spark_builder: Any) -> Any:
    builder = spark_builder.master("local[2]").appName("brokerlab-parity")
    # tiny tables: one partition
    for name, value in (("execution.arrow.pyspark.enabled", "true"), ("shuffle.partitions", "1")):
        builder = builder.config(f"spark.sql.{name}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
