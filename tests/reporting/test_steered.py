"""The table of steered plans, from made-up result files."""

from pathlib import Path

from compdiffuser.files import write_json
from compdiffuser.reporting.grid import MISSING
from compdiffuser.reporting.report import read_results
from compdiffuser.reporting.tables import TABLES

POINT, ANT = "pointmaze-giant-stitch-v0", "antmaze-giant-stitch-v0"


def write(folder: Path, dataset: str, kind: str, method: str, **told) -> None:
    """A file as `benchmarks/steering.py` writes it."""
    result = {
        "dataset": dataset, "kind": kind, "method": method, "settings": {"hardware": "one H200"}, "complete": True,
        "count": 200, "certified": 99.5, "certified_and_sound": 98.5, "false": 2, "seconds": 0.1234, "problems": [],
    }  # fmt: skip
    write_json(folder / f"steering-{dataset}-{kind}-{method}.json", result | told)


def test_each_kind_and_method_has_a_line_and_what_is_missing_a_dash(tmp_path):
    write(tmp_path, POINT, "avoid", "steered", driven=91.0)
    write(tmp_path, POINT, "avoid", "none")
    write(tmp_path, ANT, "repair", "steered", driven=90.5, times_faster=5.25, seconds=0.0456)
    write(tmp_path, ANT, "via", "steered", complete=False)
    table = TABLES["steered"](read_results(tmp_path)).splitlines()
    assert len(table) == 2 + 14 + 2
    assert f"| pointmaze-giant-stitch | avoid | steered | 200 | 98.5 | 2 | 91 | 0.123 s | {MISSING} |" in table
    assert (
        f"| pointmaze-giant-stitch | avoid | none | 200 | 98.5 | {MISSING} | {MISSING} | 0.123 s | {MISSING} |" in table
    )
    assert "| antmaze-giant-stitch | repair | steered | 200 | 98.5 | 2 | 90.5 | 0.0456 s | 5.25 |" in table
    assert f"| antmaze-giant-stitch | via | steered |{f' {MISSING} |' * 6}" in table, "what is under way waits"
    assert table[-1] == "Times: one H200."


def test_without_files_all_cells_are_dashes(tmp_path):
    table = TABLES["steered"](read_results(tmp_path))
    assert table.count(MISSING) == 14 * 6
    assert "Times" not in table


def test_no_other_table_takes_steered_plans_for_evaluations(tmp_path):
    before = {name: table(read_results(tmp_path)) for name, table in TABLES.items() if name != "steered"}
    for method in ("steered", "rejection", "none"):
        write(tmp_path, POINT, "avoid", method, driven=91.0)
    results = read_results(tmp_path)
    assert before == {name: table(results) for name, table in TABLES.items() if name != "steered"}
