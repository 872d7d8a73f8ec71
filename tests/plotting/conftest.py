"""The oracle planner of the planning tests and the small world of the evaluation tests serve here too."""

import sys
from pathlib import Path

import pytest

from compdiffuser.plotting.scene_video import check_opengl
from compdiffuser.types import UserError

for room in ("planning", "evaluation"):
    sys.path.insert(0, str(Path(__file__).parents[1] / room))


@pytest.fixture
def gl() -> None:
    try:
        check_opengl()
    except UserError as error:
        pytest.skip(str(error))
