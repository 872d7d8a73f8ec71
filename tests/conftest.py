"""What tests of all kinds share."""

import pytest


@pytest.fixture(scope="module")
def few_windows():
    """Planners are calibrated on few windows of their data: enough where nobody asks how good their certificate is."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("calibration", "passages", "postures", "support", "training"):
            patch.setattr(f"compdiffuser.planning.{module}.WINDOWS", 256)
        yield
