"""The client library itself, in an environment of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def original() -> str:
    """The Python of the environment that has the client."""
    made = subprocess.run(
        [str(ROOT / "tools" / "setup_original.sh")],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if made.returncode != 0:
        pytest.skip(f"NOT CHECKED against the original library: {made.stderr.strip()}")
    return made.stdout.strip()
