"""The scripted ddx of the loop's tests, for whole commands."""

from tests.core.supervision.run.conftest import stage

__all__ = ["stage"]
