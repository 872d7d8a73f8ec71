"""`compdiffuser train` and `train-controller`: whose preset they take, and what they refuse before the work."""

import re
import signal

import numpy as np
import pytest

from compdiffuser.artifact import CONFIG
from compdiffuser.cli import main
from compdiffuser.cli.contestants import trained
from compdiffuser.files import read_json
from compdiffuser.following.inverse_dynamics import load_controller
from compdiffuser.planning.planner import Planner
from compdiffuser.presets import preset
from compdiffuser.training.updater import Updater

pytestmark = pytest.mark.usefixtures("few_windows")
UMAZE = "robotics-pointmaze-umaze-v0"
SMALL = ["--steps", "2", "--batch", "4", "--device", "cpu"]


@pytest.fixture
def made(home) -> str:
    assert main(["data", "make", UMAZE, "--episodes", "6", "--workers", "1", "--out", "mine.npz"]) == 0
    return "mine.npz"


@pytest.mark.slow
def test_a_file_made_with_out_trains_with_the_preset_of_its_dataset(made):
    assert main(["train", made, *SMALL, "--width", "16", "--depth", "1", "--out", "planner"]) == 0
    assert Planner.from_pretrained("planner", device="cpu").preset == preset(UMAZE)
    assert main(["train", made, *SMALL, "--method", "gcbc", "--set", "hidden=[8]", "--out", "agents"]) == 0
    assert read_json(f"agents/{CONFIG}")["preset"]["name"] == UMAZE


@pytest.mark.parametrize("command", [["train"], ["train", "--method", "gcbc"], ["train-controller"]])
def test_a_run_that_cannot_be_written_is_refused_before_the_work(command, made, no_folder, monkeypatch, capsys):
    monkeypatch.setattr("compdiffuser.training.loop.Updater.update", lambda *given: pytest.fail("something is trained"))
    assert main([command[0], made, *command[1:], *SMALL, "--out", str(no_folder / "run")]) == 2
    assert f"compdiffuser: cannot write '{no_folder / 'run' / CONFIG}'" in capsys.readouterr().err


def test_data_that_cannot_be_written_is_refused_before_the_work(no_folder, monkeypatch, capsys):
    monkeypatch.setattr("compdiffuser.data.generate.make", lambda *given: pytest.fail("something is recorded"))
    assert main(["data", "make", UMAZE, "--episodes", "6", "--out", str(no_folder / "d.npz")]) == 2
    assert f"compdiffuser: cannot write '{no_folder / 'd.npz'}'" in capsys.readouterr().err


def test_a_dataset_that_is_not_made_leaves_no_folder_behind(home, capsys):
    assert main(["train", UMAZE, *SMALL]) == 2
    assert "is not made yet" in capsys.readouterr().err
    assert not (home / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing-v0"], "unknown dataset 'nothing-v0'"),
        (["missing.npz"], "missing.npz"),
        (["pointmaze-medium-stitch-v0", "--dims", "a,b"], "dims are whole numbers separated by commas, not 'a,b'"),
        (["pointmaze-medium-stitch-v0", "--horizon", "100", "--overlap", "60"], "at most half the horizon 100"),
        (["pointmaze-medium-stitch-v0", "--steps", "-1"], "steps must be at least 1, not -1"),
    ],
)
def test_mistakes_get_one_sentence(arguments, sentence, capsys):
    assert main(["train", *arguments, "--device", "cpu"]) == 2
    assert sentence in capsys.readouterr().err


def own_file(name: str, dims: int = 4, states: int = 40, largest: float = 3.0) -> str:
    """Random walks whose places stand last, driven by actions of up to `largest`."""
    rng = np.random.default_rng(0)
    actions = rng.uniform(-largest, largest, (10 * states, 2)).astype(np.float32)
    walks = np.cumsum(actions.reshape(10, states, 2), axis=1).reshape(-1, 2)
    observations = np.concatenate([rng.normal(size=(len(walks), dims - 2)), walks], axis=1)
    np.savez(name, observations=observations, actions=actions, terminals=np.arange(len(walks)) % states == states - 1)
    return name


def test_episodes_of_one_state_each_are_refused_before_the_work(home, monkeypatch, capsys):
    monkeypatch.setattr("compdiffuser.training.loop.Updater.update", lambda *given: pytest.fail("something is trained"))
    assert main(["train", own_file("single.npz", states=1), *SMALL, "--width", "16", "--depth", "1"]) == 2
    assert "every episode has a single state, so that nothing moves" in capsys.readouterr().err


def test_a_controller_of_own_data_acts_in_its_range_on_the_dims_asked_for(home, capsys):
    own_file("mine.npz")
    small = ["--steps", "2", "--batch", "4", "--device", "cpu", "--out", "walker"]
    assert main(["train-controller", "mine.npz", "--dims", "2,3", *small]) == 0
    controller = load_controller("walker")
    assert controller.space.dims == (2, 3)
    assert controller.network.config.scale == pytest.approx([3, 3], rel=0.05)
    assert controller.look_ahead == pytest.approx(10 * controller.speeds[0])
    actions = controller(np.zeros((5, 4)), np.full((5, 2), 50.0))
    assert actions.shape == (5, 2)
    assert np.abs(actions).max() <= 3
    assert main(["train-controller", "mine.npz", "--dims", "2,9", *small]) == 2
    assert "there is no dimension 9" in capsys.readouterr().err


def test_a_controller_needs_actions(home, capsys):
    own_file("still.npz", largest=0.0)
    assert main(["train-controller", "still.npz", *SMALL]) == 2
    assert "learns from recorded actions, and this data has none" in capsys.readouterr().err


@pytest.mark.slow
def test_chunks_that_are_mostly_padding_are_told(home, capsys):
    own_file("short.npz", dims=2, states=10)
    assert main(["train", "short.npz", "--horizon", "64", *SMALL, "--width", "16", "--depth", "1"]) == 0
    assert "note: 84% of the states in chunks are copies" in capsys.readouterr().err


@pytest.mark.slow
def test_own_data_gets_a_proposal_with_reasons_and_is_told_how_sound_it_is(home, monkeypatch, capsys):
    monkeypatch.setattr("compdiffuser.planning.sharing.soundness.PAIRS", 2)
    own_file("mine.npz", dims=2, states=30)
    small = ["--width", "16", "--depth", "1", "--batch", "4", "--device", "cpu", "--out", "run"]
    assert main(["train", "mine.npz", *small, "--steps", "100", "--log-every", "25"]) == 0
    told = capsys.readouterr().err
    assert "note: --dims 0,1: observations are 2 numbers, taken for the agent's place" in told
    assert "note: --horizon 16 --overlap 6 --stride 1: three quarters of the episodes have 30 states or more" in told
    assert "note: training takes about" in told
    assert all(f"after {updates} updates: " in told for updates in (25, 50, 75))
    assert re.search(r"finished: \d of 2 random recorded pairs certified", told)
    planner = Planner.from_pretrained("run", device="cpu")
    assert (planner.preset.chunks.horizon, planner.scaffold, planner.model.network.width) == (16, 0.25, 16)


@pytest.mark.slow
def test_soundness_is_told_on_the_way_to_a_time_limit(home, monkeypatch, capsys):
    monkeypatch.setattr("compdiffuser.planning.sharing.soundness.PAIRS", 2)
    own_file("mine.npz", dims=2, states=30)
    small = ["--width", "16", "--depth", "1", "--batch", "4", "--device", "cpu", "--out", "run"]
    assert main(["train", "mine.npz", *small, "--time-limit", "1", "--log-every", "1"]) == 0
    assert 1 <= len(re.findall(r"^after [\d,]+ updates: ", capsys.readouterr().err, re.MULTILINE)) <= 3


@pytest.mark.slow
def test_what_is_asked_for_is_not_proposed(home):
    own_file("mine.npz")
    asked = ["--dims", "2,3", "--horizon", "24", "--stride", "2", "--width", "16", "--depth", "1"]
    assert main(["train", "mine.npz", *asked, *SMALL, "--out", "run"]) == 0
    planner = Planner.from_pretrained("run", device="cpu")
    chunks = planner.preset.chunks
    assert (planner.space.dims, chunks.horizon, chunks.stride, planner.model.network.depth) == ((2, 3), 24, 2, 1)


@pytest.mark.slow
def test_a_run_ended_by_ctrl_c_can_plan_and_be_continued(home, monkeypatch, capsys):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background run may ignore it
    own_file("mine.npz", dims=2, states=30)
    update = Updater.update

    def pressed(self, step, done):
        update(self, step, done)
        if step == 4:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Updater, "update", pressed)
    run = ["train", "mine.npz", "--horizon", "16", "--overlap", "4", "--width", "16", "--depth", "1", "--batch", "4",
           "--device", "cpu", "--out", "run", "--steps", "9", "--log-every", "2"]  # fmt: skip
    try:
        assert main(run) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    told = capsys.readouterr().err
    assert "what was learned so far can plan" in told
    assert "stopped after 5 updates, which are kept; the same command continues" in told
    planner = Planner.from_pretrained("run", device="cpu")
    assert planner.record["after_updates"] == trained(planner.record)["updates"] == 5
    assert np.isfinite(planner.plan((0, 0), (1, 1), n_chunks=1, n_candidates=1).states).all()
    monkeypatch.setattr(Updater, "update", update)
    assert main(run) == 0
    assert "trained 9 updates" in capsys.readouterr().out
    record = Planner.from_pretrained("run", device="cpu").record
    assert record["outcome"]["steps"] == trained(record)["updates"] == 9
