import errno
import io
import json
import zipfile

import h5py
import numpy as np
import pytest

from compdiffuser.data import storage
from compdiffuser.presets import PRESETS
from compdiffuser.types import Episodes, UserError

FIELDS = {
    "observations": np.zeros((6, 2), np.float32),
    "actions": np.zeros((6, 1), np.float32),
    "terminals": np.array([0, 0, 1, 0, 0, 1], bool),
}


def write(path, **changes):
    fields = {name: value for name, value in {**FIELDS, **changes}.items() if value is not None}
    np.savez(path, **fields)
    return path


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPDIFFUSER_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_saved_and_loaded_unchanged(three, tmp_path):
    manifest = storage.save(three, tmp_path / "d.npz", {"seed": 3})
    again = storage.load(tmp_path / "d.npz")
    for name in ("observations", "actions", "starts", "lengths", "qpos", "qvel"):
        np.testing.assert_array_equal(getattr(again, name), getattr(three, name))
    assert json.loads((tmp_path / "d.json").read_text()) == manifest
    assert manifest["seed"] == 3
    with np.load(tmp_path / "d.npz") as archive:
        assert set(archive.files) == {"observations", "actions", "terminals", "qpos", "qvel"}
        assert archive["terminals"].dtype == bool
        assert archive["qpos"].dtype == np.float32


def test_same_arrays_same_bytes(three, tmp_path):
    for name in ("a.npz", "b.npz"):
        storage.save(three, tmp_path / name, {})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.npz", "b.json", "b.npz"]


def test_a_known_name_is_found_in_the_home_folder(three, home):
    storage.save(three, home / "data" / "pointmaze-giant-stitch-v0.npz", {})
    storage.save(three[:1], home / "data" / "pointmaze-giant-stitch-v0-val.npz", {})
    assert len(storage.load("pointmaze-giant-stitch-v0")) == 3
    assert len(storage.load("pointmaze-giant-stitch-v0", split="val")) == 1


def test_an_official_file_loads_unchanged(tmp_path):
    """OGBench writes compressed files with its own field names and no manifest."""
    rng = np.random.default_rng(0)
    fields = {name: rng.normal(size=(6, 2)).astype(np.float32) for name in ("observations", "actions", "qpos", "qvel")}
    np.savez_compressed(tmp_path / "pointmaze-giant-stitch-v0.npz", terminals=FIELDS["terminals"], **fields)
    episodes = storage.load(tmp_path / "pointmaze-giant-stitch-v0.npz")
    assert len(episodes) == 2
    for name, array in fields.items():
        np.testing.assert_array_equal(getattr(episodes, name), array)


def test_a_file_made_elsewhere_trains_with_its_datasets_preset(small, tmp_path):
    """`data make --out mine.npz` left a file that was trained on as data of one's own: other chunks, no maze."""
    assert small.stem not in PRESETS
    assert storage.preset_for(str(small)) is PRESETS["pointmaze-medium-stitch-v0"]
    assert storage.preset_of(str(small), split="val") is PRESETS["pointmaze-medium-stitch-v0"]
    own = storage.preset_for(str(write(tmp_path / "mine.npz")))
    assert (own.name, own.chunks.horizon, own.maze, own.recording) == ("mine", 64, None, None)
    with pytest.raises(UserError, match="unknown split 'test'; choose one of train, val"):
        storage.load(tmp_path / "nothing.npz", "test")
    with pytest.raises(UserError, match=r"there is no file .*nothing\.npz"):
        storage.preset_for(str(tmp_path / "nothing.npz"))


@pytest.mark.parametrize("suffix", ["h5", "hdf5"])
def test_hdf5_with_timeouts_loads(tmp_path, suffix):
    with h5py.File(tmp_path / f"own.{suffix}", "w") as file:
        for name, array in FIELDS.items():
            file[name] = array.astype(np.float64)
        file["timeouts"] = np.array([0, 1, 0, 0, 0, 0], bool)
    assert storage.load(tmp_path / f"own.{suffix}").lengths.tolist() == [2, 1, 3]


def test_home_is_the_platforms_cache_unless_set(monkeypatch, tmp_path):
    assert storage.home() == tmp_path / "home"
    monkeypatch.delenv("COMPDIFFUSER_HOME")
    assert storage.home().name == "compdiffuser"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"observations": None}, "field 'observations' is missing; it has: actions, terminals"),
        ({"terminals": None}, "no field says where episodes end; accepted are terminals, terminations, truncations"),
        ({"episode_ends": np.array([3, 7])}, "'episode_ends' rises from 1 or more to the number of states, 6"),
        ({"truncations": np.zeros(5, bool)}, "field 'truncations' has 5 rows, but 'observations' has 6"),
        ({"timestamps": np.array([0.0, 1, 1, 0, 1, 2])}, "state 2 is recorded no later than the one before it"),
        ({"timestamps": np.arange(4.0)}, "times have 4 rows, but 'observations' has 6"),
        ({"dt": np.array(-0.1)}, "a step takes some seconds, not -0.1"),
        ({"fps": np.array([np.inf])}, "field 'fps' holds inf in row 0"),
        ({"actions": np.zeros((5, 1))}, "field 'actions' has 5 rows, but 'observations' has 6"),
        ({"terminals": np.zeros(4, bool)}, "field 'terminals' has 4 rows, but 'observations' has 6"),
        ({"observations": np.full((6, 2), np.nan)}, "field 'observations' holds nan in row 0"),
        ({"qvel": np.array([[0.0]] * 5 + [[-np.inf]])}, "field 'qvel' holds -inf in row 5"),
        (
            {"observations": np.array([[0.0, 0.0]] * 4 + [[0.0, 1e300]] * 2)},
            r"field 'observations' holds 1e\+300 in row 4, too large for float32",
        ),
        ({"observations": np.zeros(6)}, r"field 'observations' has shape \[6\], expected \[S, dimensions\]"),
        ({"actions": np.array([["left"]] * 6)}, "field 'actions' holds <U4 values, expected numbers"),
        ({k: v[:0] for k, v in FIELDS.items()}, "at least one episode, this one has 0"),
        ({"actions": np.array([[None]] * 6)}, "cannot be read as a dataset: Object arrays cannot be loaded"),
    ],
)
def test_bad_contents_are_named(tmp_path, changes, sentence):
    write(tmp_path / "bad.npz", **changes)
    with pytest.raises(UserError, match=sentence) as caught:
        storage.load(tmp_path / "bad.npz")
    assert "bad.npz" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["torn.npz", "torn.h5"])
def test_a_damaged_file_is_named(tmp_path, name):
    (tmp_path / name).write_bytes(write(tmp_path / "whole.npz").read_bytes()[:200])
    with pytest.raises(UserError, match=f"{name} cannot be read as a dataset"):
        storage.load(tmp_path / name)


def test_hdf5_that_leads_elsewhere_is_refused(tmp_path):
    """Reading it would read whatever file it names."""
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["numbers"] = FIELDS["observations"].astype(np.float64)
    (tmp_path / "raw").write_bytes(bytes(96))
    layout = h5py.VirtualLayout(FIELDS["observations"].shape, np.float64)
    layout[:] = h5py.VirtualSource(tmp_path / "secret.h5", "numbers", shape=layout.shape)
    beginnings = {
        "is a link to another place": lambda file: file.__setitem__(
            "observations", h5py.ExternalLink("secret.h5", "numbers")
        ),
        "is no array in this file": lambda file: file.create_virtual_dataset("observations", layout),
        "no array in this file": lambda file: file.create_dataset(
            "observations", (6, 2), np.float64, external=[(tmp_path / "raw", 0, 96)]
        ),
        "more than the file can hold": lambda file: file.create_dataset(
            "observations", (10**9, 2), np.float64, chunks=(1000, 2)
        ),
    }
    for sentence, write_observations in beginnings.items():
        with h5py.File(tmp_path / "own.h5", "w") as file:
            for name in ("actions", "terminals"):
                file[name] = FIELDS[name].astype(np.float64)
            write_observations(file)
        with pytest.raises(UserError, match=f"own.h5.*{sentence}"):
            storage.load(tmp_path / "own.h5")


def test_an_array_that_claims_more_than_its_file_holds_is_refused_without_memory(tmp_path):
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f4", "fortran_order": False, "shape": (10**12, 2)})
    with zipfile.ZipFile(write(tmp_path / "vast.npz"), "a") as archive:
        archive.writestr("qpos.npy", content.getvalue())
    with pytest.raises(UserError, match=r"vast.npz.*'qpos.npy' is said to have 8000000000000 bytes"):
        storage.load(tmp_path / "vast.npz")


def test_a_changed_file_does_not_match_its_manifest(three, tmp_path):
    storage.save(three, tmp_path / "d.npz", {})
    write(tmp_path / "d.npz")
    with pytest.raises(UserError, match=r"d.npz is not the file its manifest describes: checksum \w{12}… instead of"):
        storage.load(tmp_path / "d.npz")


def test_an_unreadable_manifest_is_named(three, tmp_path):
    storage.save(three, tmp_path / "d.npz", {})
    (tmp_path / "d.json").write_text("{")
    with pytest.raises(UserError, match=r"manifest .*d.json cannot be read"):
        storage.load(tmp_path / "d.npz")


def test_a_manifest_without_a_name_knows_no_preset(three, tmp_path):
    storage.save(three, tmp_path / "d.npz", {"name": [["a"]]})
    assert storage.preset_of(str(tmp_path / "d.npz")) is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("pointmaze-gaint-stitch-v0", "unknown dataset .* did you mean 'pointmaze-giant-stitch-v0'"),
        ("pointmaze-large-stitch-v0", "not made yet; make it with: compdiffuser data make pointmaze-large-stitch-v0"),
        ("nowhere/data.npz", "there is no file nowhere/data.npz"),
        ("/tmp/", "is not a dataset: expected a file ending in .npz, .hdf5 or .h5, a folder ending in .zarr"),
        ("episodes/data.csv", "is not a dataset: expected a file ending in"),
    ],
)
def test_what_is_not_there_is_named(given, sentence):
    with pytest.raises(UserError, match=sentence):
        storage.load(given)


@pytest.mark.parametrize(
    ("number", "sentence"),
    [(errno.ENOSPC, "no space is left"), (errno.EACCES, "permission denied"), (errno.EROFS, "read-only")],
)
def test_a_failed_write_is_one_sentence_and_leaves_the_old_file(three, tmp_path, monkeypatch, number, sentence):
    storage.save(three, tmp_path / "d.npz", {})
    before = (tmp_path / "d.npz").read_bytes()

    def fail(*_):
        raise OSError(number, "as the system says")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(UserError, match=f"cannot write .*d.npz.*{sentence}"):
        storage.save(three[:1], tmp_path / "d.npz", {})
    assert (tmp_path / "d.npz").read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def test_times_of_long_episodes_are_kept(tmp_path):
    times = np.array([0.0, 0.01, 200_000.0, 200_000.01])
    episodes = Episodes.from_lists([np.zeros((4, 2))], [np.zeros((4, 1))], times=[times])
    storage.save(episodes, tmp_path / "d.npz", {})
    np.testing.assert_array_equal(storage.load(tmp_path / "d.npz").times, times)
