"""A panel for each chunk where several things move."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from meadow import BALL, FENCE

from compdiffuser.planning.plan import Plan
from compdiffuser.plotting.chunks import plot_chunks

LINE = np.linspace([1, 1, 2, 1], [4, 1, 5, 3], 8)


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (5, 5), (7, 4), (13, 5)])
def test_every_chunk_has_a_panel_and_rows_are_even(count, columns, tmp_path):
    chunks = np.stack([LINE] * count)
    figure = plot_chunks(chunks, 3, space=BALL.space, maze=FENCE, start=LINE[0], goal=LINE[-1], png=tmp_path / "a.png")
    assert len(figure.axes) == count
    assert figure.axes[0].get_gridspec().ncols == columns
    assert (tmp_path / "a.png").stat().st_size > 0


def test_a_panel_shows_its_chunk_over_the_whole_plan():
    chunks = np.stack([LINE, LINE + 1, LINE + 2])
    figure = plot_chunks(chunks, 3, space=BALL.space, start=LINE[0], goal=LINE[-1], title="three")
    for number, ax in enumerate(figure.axes):
        *rest, agent, ball = (each for each in ax.collections if isinstance(each, LineCollection))
        assert [len(each.get_segments()) for each in rest] == [3, 3]
        np.testing.assert_allclose(agent.get_segments()[0], LINE[:, :2] + number)
        np.testing.assert_allclose(ball.get_segments()[0], LINE[:, 2:] + number)
    assert [ax.get_title() for ax in figure.axes] == ["1: states 0–7", "2: states 5–12", "3: states 10–17"]
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["agent, and where it ends", "ball, and where it ends", "start", "goal"]
    assert figure.get_suptitle() == "three"


def test_a_plan_of_several_things_is_drawn_chunk_by_chunk(tmp_path):
    plan = Plan(LINE, np.stack([LINE[:5], LINE[3:]]), LINE[0], LINE[-1], 2, space=BALL.space, maze=FENCE)
    assert len(plan.plot(tmp_path / "plan.png").axes) == 2
    assert len(plan.plot(executed=LINE).axes) == 1, "a path is drawn over all chunks"
