"""The reference libraries warn at import; nothing of ours is excused from failing on a warning."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for module in ("torch", "transformers", "numpy"):
                item.add_marker(pytest.mark.filterwarnings(rf"ignore:::{module}"))
