"""Hadoop's file system for S3, with the parts of the AWS SDK that it needs: 15 MB of 690."""

from __future__ import annotations

import os
import sys
from pathlib import Path

S3A = "UNDERLAY_TEST_S3A"
"""The environment variable of processes whose session has the jars."""
_PACKAGES = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    "software.amazon.awssdk:s3-transfer-manager:2.35.4",
    "software.amazon.awssdk:apache-client:2.35.4",
    "software.amazon.awssdk:sts:2.35.4",
)
_EXCLUDED = ("software.amazon.awssdk:bundle", "io.netty:*", "org.slf4j:*")
"""All of the SDK, and what Spark has."""
_FOLDER = Path(sys.prefix) / "jars"


def submit_arguments() -> str:
    """What makes Spark fetch the jars, once, and use them, in a process that is to have them."""
    if S3A not in os.environ:
        return ""
    packages = f"--packages {','.join(_PACKAGES)} --exclude-packages {','.join(_EXCLUDED)}"
    return f"{packages} --conf spark.jars.ivy={_FOLDER}"
