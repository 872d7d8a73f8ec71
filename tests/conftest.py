"""What tests of all kinds share."""

import pytest


@pytest.fixture(scope="module")
def few_windows():
    """Planners are calibrated on few windows of their data: enough where nobody asks how good their certificate is."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("calibration", "passages", "postures", "support"):
            patch.setattr(f"compdiffuser.planning.recorded.{module}.WINDOWS", 256)
        patch.setattr("compdiffuser.planning.training.WINDOWS", 256)
        yield
