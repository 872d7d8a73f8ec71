"""The oracle planner of the planning tests serves here too."""

import sys
from pathlib import Path

import pytest

from compdiffuser.plotting.scene_video import check_opengl
from compdiffuser.types import UserError

sys.path.insert(0, str(Path(__file__).parents[1] / "planning"))


@pytest.fixture
def gl() -> None:
    try:
        check_opengl()
    except UserError as error:
        pytest.skip(str(error))
