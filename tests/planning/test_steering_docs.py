"""What docs/steering.md shows is run as it stands."""

import doctest
from pathlib import Path

import pytest
import torch

PAGE = Path(__file__).parents[2] / "docs" / "steering.md"


@pytest.mark.slow
def test_the_page_about_steering_is_true():
    torch.set_num_threads(1)
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried > 15
    assert failed == 0
