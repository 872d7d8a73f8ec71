"""Data as people have it: files of other libraries come in with their episodes, their names and their clocks."""

import json

import h5py
import numpy as np
import pytest

from compdiffuser.cli import main
from compdiffuser.data.storage import load, save
from compdiffuser.types import Episodes, UserError

LENGTHS = (5, 3, 4)
ENDS = np.cumsum(LENGTHS)
STATES = np.arange(2 * sum(LENGTHS), dtype=np.float32).reshape(-1, 2)
ACTIONS = -STATES[:, :1]
PARTS = np.split(np.arange(len(STATES)), ENDS[:-1])


def last(*which: int) -> np.ndarray:
    """Flags, true on the last state of these episodes."""
    return np.isin(np.arange(len(STATES)), ENDS[list(which)] - 1)


def same(episodes: Episodes, rate: float | None = None) -> None:
    np.testing.assert_array_equal(episodes.observations[:, :2], STATES)
    np.testing.assert_array_equal(episodes.lengths, LENGTHS)
    assert episodes.step_seconds == (rate and pytest.approx(1 / rate))


@pytest.mark.parametrize(
    ("fields", "rate"),
    [
        ({"terminals": last(0), "truncations": last(1, 2)}, None),
        ({"terminations": last(1), "truncations": last(0, 2), "fps": 20}, 20),
        ({"dones": last(0, 1, 2), "dt": 0.1}, 10),
        ({"episode_ends": ENDS, "timestamps": 1.7e9 + 0.25 * np.arange(12)}, 4),
        ({"episode_index": np.repeat([7, 2, 9], LENGTHS), "times": np.arange(12)[:, None] / 50}, 50),
    ],
)
@pytest.mark.parametrize("name", ["mine.npz", "mine.h5"])
def test_episodes_end_and_clocks_tick_by_many_names(tmp_path, name, fields, rate):
    path = tmp_path / name
    arrays = {"obs": STATES, "action": ACTIONS, **fields}
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        with h5py.File(path, "w") as file:
            for key, value in arrays.items():
                file[key] = value
    episodes = load(path)
    same(episodes, rate)
    np.testing.assert_array_equal(episodes.actions, ACTIONS)
    again = save(episodes, tmp_path / "again.npz", {}) and load(tmp_path / "again.npz")
    same(again, rate)
    if rate:
        np.testing.assert_allclose(again.times[again.starts], 0)


def test_a_flat_file_has_no_validation_split_unless_one_lies_beside_it(tmp_path):
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file["obs"], file["action"], file["episode_ends"] = STATES, ACTIONS, [len(STATES)]
    with pytest.raises(UserError, match=r"mine\.h5: it has no validation split"):
        load(tmp_path / "mine.h5", "val")
    np.savez(tmp_path / "mine-val.npz", obs=STATES + 1, action=ACTIONS, episode_ends=[len(STATES)])
    np.testing.assert_array_equal(load(tmp_path / "mine.h5", "val").observations, STATES + 1)


def test_a_file_without_actions_is_planned_with_and_nothing_else(tmp_path, capsys):
    np.savez(tmp_path / "seen.npz", observations=STATES, truncations=last(0, 1, 2))
    episodes = load(tmp_path / "seen.npz")
    assert episodes.actions.shape == (12, 0)
    assert main(["data", "info", str(tmp_path / "seen.npz")]) == 0
    assert main(["train-controller", str(tmp_path / "seen.npz"), "--out", str(tmp_path / "run")]) == 2
    assert "learns from recorded actions, and this data has none" in capsys.readouterr().err


def test_jumps_within_an_episode_are_told(tmp_path, capsys):
    """300 episodes whose ends nobody reads are one, with teleports."""
    walks = np.cumsum(np.full((300, 20, 2), 0.1), axis=1) + np.random.default_rng(0).uniform(0, 50, (300, 1, 2))
    np.savez(tmp_path / "one.npz", observations=walks.reshape(-1, 2), terminals=np.zeros(6000, bool))
    assert main(["data", "info", str(tmp_path / "one.npz"), "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert note.startswith("29")
    assert "steps within episodes are more than 10 times as long as 95% of all" in note
    np.savez(tmp_path / "good.npz", observations=walks.reshape(-1, 2), terminals=np.arange(6000) % 20 == 19)
    assert main(["data", "info", str(tmp_path / "good.npz"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []


def test_lists_of_arrays_are_episodes():
    parts = [STATES[rows] for rows in PARTS]
    same(Episodes.from_lists(parts), None)
    moved = Episodes.from_lists(parts, [ACTIONS[rows][:-1] for rows in PARTS], rate=10)
    same(moved, 10)
    np.testing.assert_array_equal(moved.actions[ENDS - 1], 0)
    same(Episodes.from_lists(parts, times=[100 + 0.5 * np.arange(len(rows)) for rows in PARTS]), 2)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (([],), "at least one episode"),
        (([STATES, STATES[:, :1]],), r"episode 1 has observations of shape \[12, 1\]"),
        (([STATES], [ACTIONS[:3]]), r"episode 0 has actions of shape \[3, 1\], expected \[12 or 11, act\]"),
        (([STATES], [ACTIONS, ACTIONS]), "actions of 2 episodes were given with states of 1"),
    ],
)
def test_lists_that_do_not_fit_are_told(given, sentence):
    with pytest.raises(UserError, match=sentence):
        Episodes.from_lists(*given)


def robomimic(path, masks=True, **attributes):
    """A file in robomimic's published layout; demonstration 10 comes after 2."""
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["total"] = len(STATES)
        data.attrs["env_args"] = json.dumps({"env_name": "Lift", "type": 1, "env_kwargs": {"control_freq": 20}})
        for name, rows in zip(("demo_0", "demo_2", "demo_10"), PARTS, strict=True):
            demo = data.create_group(name)
            demo.attrs["num_samples"] = len(rows)
            demo["actions"], demo["dones"] = ACTIONS[rows], np.arange(len(rows)) == len(rows) - 1
            demo["obs/eef_pos"], demo["obs/gripper"] = STATES[rows], STATES[rows, 0]
            demo["obs/picture"] = np.zeros((len(rows), 4, 4, 3), np.uint8)
        if masks:
            file["mask/train"], file["mask/valid"] = np.array([b"demo_0", b"demo_10"]), np.array([b"demo_2"])
    return path


def test_robomimics_files_are_read(tmp_path):
    episodes = load(robomimic(tmp_path / "lift.hdf5", masks=False))
    same(episodes, 20)
    np.testing.assert_array_equal(episodes.actions, ACTIONS)
    assert episodes.names == ("eef_pos 0", "eef_pos 1", "gripper")
    masked = robomimic(tmp_path / "masked.hdf5")
    assert load(masked).lengths.tolist() == [5, 4]
    assert load(masked, "val").lengths.tolist() == [3]
    with pytest.raises(UserError, match=r"lift.hdf5: it has no validation split"):
        load(tmp_path / "lift.hdf5", "val")


@pytest.mark.parametrize("place", ["data/demo_2", "data/demo_2/obs", "data", "mask", "mask/train"])
def test_demonstrations_in_other_files_are_not_read(tmp_path, place):
    robomimic(tmp_path / "secret.h5")
    with h5py.File(robomimic(tmp_path / "linked.hdf5"), "a") as file:
        del file[place]
        file[place] = h5py.ExternalLink(str(tmp_path / "secret.h5"), place)
        if not place.startswith("mask"):
            del file["mask"]
    with pytest.raises(UserError, match=r"is a link to another place; copy what is there into the file"):
        load(tmp_path / "linked.hdf5")


def test_demonstrations_without_states_are_passed_over(tmp_path):
    with h5py.File(robomimic(tmp_path / "lift.hdf5", masks=False), "a") as file:
        for name, array in (("actions", ACTIONS), ("obs/eef_pos", STATES), ("obs/gripper", STATES[:, 0])):
            file[f"data/demo_1/{name}"] = array[:0]
    same(load(tmp_path / "lift.hdf5"), 20)


def test_zarr_replay_buffers_are_read(tmp_path):
    zarr = pytest.importorskip("zarr")
    for version in (2, 3):
        root = zarr.open_group(str(tmp_path / f"v{version}.zarr"), mode="w", zarr_format=version)
        data, meta = root.create_group("data"), root.create_group("meta")
        for group, name, values in ((data, "state", STATES), (data, "action", ACTIONS), (meta, "episode_ends", ENDS)):
            group.create_array(name, data=values)
        same(load(tmp_path / f"v{version}.zarr"))
    with pytest.raises(UserError, match=r"there is no file .*nothing.zarr"):
        load(tmp_path / "nothing.zarr")


def lerobot(folder, version: str, splits=None, **features):
    """A dataset in LeRobot's published layout: a file for each episode (v2), or one for all (v3)."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (folder / "meta").mkdir(parents=True)
    (folder / "data" / "chunk-000").mkdir(parents=True)
    info = {
        "codebase_version": version, "fps": 5, "total_episodes": 3, "total_frames": 12, "splits": splits or {},
        "features": {
            "observation.images.front": {"dtype": "video", "shape": [48, 64, 3], "names": None},
            "observation.force": {"dtype": "float32", "shape": [1], "names": None},
            "observation.state": {"dtype": "float32", "shape": [2], "names": {"motors": ["pan", "lift"]}},
            "action": {"dtype": "float32", "shape": [1], "names": ["pan"]},
            "episode_index": {"dtype": "int64", "shape": [1], "names": None},
        } | features,
    }  # fmt: skip
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    tables = [
        pyarrow.table(
            {
                "observation.state": pyarrow.array(STATES[rows].tolist(), pyarrow.list_(pyarrow.float32(), 2)),
                "observation.force": pyarrow.array([float(n) for n in rows], pyarrow.float32()),
                "action": pyarrow.array(ACTIONS[rows].tolist(), pyarrow.list_(pyarrow.float32())),
                "timestamp": pyarrow.array((np.arange(len(rows)) / 5).tolist(), pyarrow.float32()),
                "frame_index": pyarrow.array(range(len(rows)), pyarrow.int64()),
                "episode_index": pyarrow.array([number] * len(rows), pyarrow.int64()),
            }
        )
        for number, rows in enumerate(PARTS)
    ]
    if version.startswith("v2"):
        for number, table in enumerate(tables):
            parquet.write_table(table, folder / "data" / "chunk-000" / f"episode_{number:06d}.parquet")
    else:
        parquet.write_table(pyarrow.concat_tables(tables), folder / "data" / "chunk-000" / "file-000.parquet")
    return folder


@pytest.mark.parametrize("version", ["v2.0", "v2.1", "v3.0"])
def test_lerobots_datasets_are_read(tmp_path, version):
    episodes = load(lerobot(tmp_path / "arm", version))
    same(episodes, 5)
    np.testing.assert_array_equal(episodes.observations[:, 2], np.arange(12))
    np.testing.assert_array_equal(episodes.actions, ACTIONS)
    assert episodes.names == ("pan", "lift", "observation.force")
    split = lerobot(tmp_path / "split", version, {"train": "0:2", "test": "2:3"})
    assert (load(split).lengths.tolist(), load(split, "val").lengths.tolist()) == ([5, 3], [4])


def test_cells_of_different_lengths_are_told_and_files_without_rows_passed_over(tmp_path):
    folder = lerobot(tmp_path / "arm", "v2.1") / "data" / "chunk-000"
    from pyarrow import array, float32, list_, parquet

    table = parquet.read_table(folder / "episode_000001.parquet")
    parquet.write_table(table.slice(0, 0), folder / "episode_000003.parquet")
    same(load(tmp_path / "arm"), 5)
    cells = [[0.0], [0.0, 0.0, 0.0], [0.0, 0.0]]  # 2 numbers on average
    ragged = table.set_column(0, "observation.state", array(cells, list_(float32())))
    parquet.write_table(ragged, folder / "episode_000001.parquet")
    with pytest.raises(UserError, match=r"cells of column 'observation.state' have different lengths"):
        load(tmp_path / "arm")


def test_what_is_wrong_with_a_folder_is_told(tmp_path):
    with pytest.raises(UserError, match=r"LeRobot's format v1.6; v2 and v3 can be read"):
        load(lerobot(tmp_path / "old", "v1.6"))
    blind = {f"observation.{name}": {"dtype": "image", "shape": [2]} for name in ("state", "force")}
    with pytest.raises(UserError, match="its features have no observed numbers"):
        load(lerobot(tmp_path / "blind", "v3.0", **blind))
    broken = lerobot(tmp_path / "broken", "v3.0")
    (broken / "data" / "chunk-000" / "file-000.parquet").write_bytes(b"no parquet")
    with pytest.raises(UserError, match=r"broken cannot be read as a dataset"):
        load(broken)
    with pytest.raises(UserError, match=r"it has no validation split; its splits are none"):
        load(lerobot(tmp_path / "whole", "v2.1"), "val")


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("compdiffuser.data.formats.find_spec", lambda name: None)
    (tmp_path / "mine.zarr").mkdir()
    with pytest.raises(UserError, match=r"needs 'zarr'; in your clone: .*'\.\[zarr\]'"):
        load(tmp_path / "mine.zarr")


def test_minari_downloads_what_is_not_here(monkeypatch, tmp_path):
    """No network in tests: what is asked of Minari's own download is looked at."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    asked = []
    monkeypatch.setattr("minari.storage.local.hosting.download_dataset", asked.append)
    with pytest.raises(UserError, match=r"Minari dataset 'D4RL/pointmaze/umaze-v2' cannot be loaded"):
        load("minari:D4RL/pointmaze/umaze-v2")
    assert asked == ["D4RL/pointmaze/umaze-v2"]


@pytest.mark.parametrize("rate", [0, -3, float("nan")])
def test_a_rate_that_is_none_is_told(rate):
    with pytest.raises(UserError, match=f"states a second above 0, not {rate}"):
        Episodes.from_lists([np.zeros((3, 2))], rate=rate)


def test_lists_that_are_not_finite_are_told():
    with pytest.raises(UserError, match="episode 1 has observations that are not finite"):
        Episodes.from_lists([np.zeros((3, 2)), np.full((2, 2), np.nan)])
    with pytest.raises(UserError, match="episode 0 has actions that are not finite"):
        Episodes.from_lists([np.zeros((3, 2))], [np.array([[0.0], [np.nan], [0.0]])])
    with pytest.raises(UserError, match="state 1 is recorded no later than the one before it"):
        Episodes.from_lists([np.zeros((3, 2))], times=[[0.0, np.nan, 2.0]])
