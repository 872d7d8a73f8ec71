import numpy as np

from compdiffuser.domains.generated import longest_way
from compdiffuser.presets import preset
from compdiffuser.reporting.tables import TABLES


def test_problems_lie_far_apart_and_are_the_same_again(benchmark_script):
    script = benchmark_script("growing")
    name = script.name_of(0.75, 3)
    assert name == "pointmaze-9x12-seed-3-stitch"
    maze = preset(name).maze
    starts, goals = script.problems(preset(name), 6)
    for start, goal in zip(starts, goals, strict=True):
        assert maze.distances(maze.cell(start))[maze.cell(goal)] >= longest_way(maze) / 2
    np.testing.assert_array_equal(starts, script.problems(preset(name), 6)[0])


def test_a_size_is_measured_again_where_it_was_asked_for_otherwise(benchmark_script):
    script = benchmark_script("growing")
    first = script.asked(script.Benchmark(), 180)
    assert first == script.asked(script.Benchmark(workers=3), 180)
    assert first != script.asked(script.Benchmark(), 360)
    assert first != script.asked(script.Benchmark(width=64), 180)


def test_a_table_shows_what_was_measured():
    entry = {"group": "growing", "row": "24×32 cells", "column": "success, %", "value": 99.0, "hardware": "here"}
    assert "| 24×32 cells | here | 99 |" in TABLES["growing"]([{"benchmarks": [entry]}])
