"""Planners, controllers, estimators, baselines, experts and plans that a stranger hands over.

What cannot be is refused in one sentence, before memory is taken for it.
"""

import io
import json
import random
import resource
import shutil
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from stranger_artifacts import LOADERS, change_part, changed, make, places, read, write

from compdiffuser.cli import main
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.planner import Planner
from compdiffuser.training.config import TrainConfig
from compdiffuser.training.log import TrainLog
from compdiffuser.types import UserError

DEEP = json.loads("[" * 500 + "]" * 500)
HUGE = 10**30
VALUES = [
    None, [], {}, "x", -1, 0, 0.5, 3, float("nan"), float("inf"), 1e308, HUGE, 200_000, True, DEEP, "n" * 5000,
    [1, 2], [[0.0, 1.0]], [None], {"a": 1},
]  # fmt: skip
ROOM = 2**30


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("strangers")
    make(root)
    return root


@pytest.fixture
def own(made, tmp_path):
    """A copy of the artifact of a kind."""
    return lambda kind: shutil.copytree(made / kind, tmp_path / kind, dirs_exist_ok=True)


@contextmanager
def little_room():
    """Little more memory than is in use."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def refusal(kind: str, folder: Path) -> str | None:
    """The sentence in which a folder is refused; None where it is not."""
    try:
        with little_room():
            LOADERS[kind](folder)
    except UserError as error:
        told = str(error)
        assert "\n" not in told
        assert len(told) < 500
        return told
    return None


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize("text", ["null", "[" * 5000, "[" * 900 + "]" * 900, '"planner"', "{}", "\x00", " " * 2**25])
def test_a_config_that_is_no_description_is_refused(own, kind, text):
    folder = own(kind)
    write(folder, text)
    assert "config.json'" in refusal(kind, folder)


@pytest.mark.parametrize(
    ("kind", "at", "value", "sentence"),
    [
        ("planner", "denoiser.network.depth", HUGE, "depth must be at most 256, not 1000000000"),
        ("planner", "denoiser.network.width", 200_000, "width must be at most 16384, not 200000"),
        ("planner", "denoiser.network.width", 16_384, "holds weights of another network than its config says"),
        ("planner", "denoiser.network.depth", 256, "holds weights of another network than its config says: they are"),
        ("planner", "denoiser.network.expansion", 1e308, "expansion must be at most 64"),
        ("planner", "denoiser.network", None, "a network is described by its architecture"),
        ("planner", "denoiser.dim", HUGE, "dim must be at most 4096"),
        ("planner", "denoiser.horizon", 2**40, "horizon must be at most 65536"),
        ("planner", "support", [], "does not describe a planner"),
        ("planner", "support", {}, "strays must be 65 quantiles in rising order"),
        ("planner", "normalizer", {"low": [0], "high": [1]}, "the space has 2 dimensions, the denoiser 2 and the norm"),
        ("planner", "preset.domain.space", {"dims": [0, 1, 2], "positions": [["agent", [0, 1]]]}, "the space has 3"),
        ("planner", "preset.name", "n" * 5000, "name has 1 to 200 characters, not 5000"),
        ("planner", "preset.chunks.most", 10**9, "most must be at most 1024"),
        ("planner", "preset.chunks.stride", 10**9, "stride must be at most 1024"),
        ("planner", "calibration.errors", [1.0], "errors must be 65 quantiles in rising order, not [1.0]"),
        ("planner", "calibration.step", float("nan"), "step must be a finite number, not nan"),
        ("planner", "record", [], "the record and its data are objects, not []"),
        ("controller", "inverse_dynamics.hidden", [200_000] * 3, "hidden layers are at most 64 of a width of at most"),
        ("controller", "inverse_dynamics.hidden", [65_536] * 8, "another network than its config says: they are fewer"),
        ("controller", "inverse_dynamics.observation", 10**12, "observation must be at most 4096"),
        ("controller", "speed", 0, "speeds are above 0 and finite, not (0.0,)"),
        ("heading", "heading.hidden", [65_536] * 64, "another network than its config says: they are fewer"),
        ("baseline", "config.hidden", [65_536] * 64, "another network than its config says: they are fewer"),
        ("baseline", "seeds", list(range(100_000)), "seeds are 1 to 1024 different whole numbers"),
        ("baseline", "seeds", list(range(1000)), "another network than its config says: they are fewer"),
        ("baseline", "sizes.observation", HUGE, "observation must be at most 4096"),
        ("baseline", "goal_dims", [0, 9], "a goal is 2 dimensions of 2, not [0, 9]"),
        ("expert", "expert.actor_hidden", [HUGE], "actor_hidden layers are at most 64"),
        ("expert", "expert.name", DEEP, "name must be text, not [[[["),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named(own, kind, at, value, sentence):
    folder = own(kind)
    write(folder, changed(read(folder), tuple(at.split(".")), value))
    assert sentence in refusal(kind, folder)


@pytest.mark.parametrize("kind", LOADERS)
def test_any_value_anywhere_is_accepted_or_refused_in_a_sentence(own, kind):
    folder, rng = own(kind), random.Random(kind)
    config = read(folder)
    assert refusal(kind, folder) is None
    cases = [(at, value) for at in places(config) for value in VALUES]
    for at, value in rng.sample(cases, 200):
        write(folder, changed(config, at, value))
        refusal(kind, folder)


@pytest.mark.slow
def test_a_planner_that_is_accepted_can_plan(own, monkeypatch):
    for name, few in (("LANDMARKS", 16), ("STATES", 64)):  # each planner makes its own roadmap
        monkeypatch.setattr(f"compdiffuser.planning.roads.roadmap.{name}", few)
    folder, rng = own("planner"), random.Random(0)
    config = read(folder)
    cases = [(at, value) for at in places(config) for value in VALUES]
    planned = 0
    for at, value in rng.sample(cases, 200):
        write(folder, changed(config, at, value))
        try:
            planner = Planner.from_pretrained(folder, "cpu").with_sampler(steps=1, repeats=1)
            planner.plan((0, 0), (8, 8), n_candidates=1).to_dict()
            planned += 1
        except UserError:
            pass
    assert planned


@pytest.mark.parametrize(
    ("kind", "part", "change", "sentence"),
    [
        ("planner", "support", lambda a: {**a, "segments": a["segments"].T}, "segments are [N, 6] here, not [6, 100]"),
        ("planner", "support", lambda a: {"other": a["segments"]}, "lacks the recorded segments that its config names"),
        ("planner", "support", lambda a: {**a, "segments": a["segments"][:0]}, "segments are [N, 6] here, not [0, 6]"),
        ("planner", "support", lambda a: {"segments": a["segments"] * np.nan}, "holds values that are not finite"),
        ("planner", "model", lambda a: {n: w[:0] for n, w in a.items()}, "holds weights of another network"),
        ("planner", "model", lambda a: {n: w.T for n, w in a.items()}, "holds weights of another network"),
        ("planner", "model", lambda a: {n: w * np.inf for n, w in a.items()}, "holds values that are not finite"),
        ("controller", "model", lambda a: {n: w.T for n, w in a.items()}, "holds weights of another network"),
        ("controller", "model", lambda a: {"x": next(iter(a.values()))}, "is missing"),
        ("heading", "model", lambda a: {n: w.T for n, w in a.items()}, "holds weights of another network"),
        ("baseline", "model", lambda a: {n: w[:1] for n, w in a.items()}, "holds weights of another network"),
        ("expert", "actor", lambda a: {n: w.T for n, w in a.items()}, "holds weights of another network"),
        ("expert", "actor", lambda a: {"network.x.weight": np.ones(3)}, "holds weights of another network"),
        ("expert", "actor", lambda a: {}, "holds weights of another network"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:invalid value")
def test_weights_of_something_else_are_refused(own, kind, part, change, sentence):
    folder = own(kind)
    change_part(folder, part, change)
    assert sentence in refusal(kind, folder)


def test_a_network_is_restored_as_it_was_without_drawing_random_numbers(own):
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first, second = (LOADERS["controller"](own("controller")).network.state_dict() for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


@pytest.mark.parametrize("value", [HUGE, None, "n" * 5000, DEEP])
def test_commands_exit_with_2_and_one_sentence(own, value, capsys):
    planner, controller = own("planner"), own("controller")
    write(planner, changed(read(planner), ("denoiser", "network", "depth"), value))
    write(controller, changed(read(controller), ("inverse_dynamics", "hidden"), value))
    places_given = ["--start", "0,0", "--goal", "8,8"]
    for arguments in (
        ["plan", str(planner), *places_given],
        ["eval", str(planner)],
        ["serve", "--models", str(planner), "--port", "0"],
        ["plan", "n" * 5000, *places_given],
        ["plan", "a/" + "n" * 5000, *places_given],
        ["eval", "n" * 5000, "--method", "gcbc"],
        ["data", "info", "n" * 5000],
    )[: None if value == HUGE else 3]:
        assert main(arguments) == 2
        told = capsys.readouterr().err
        assert told.startswith("compdiffuser: ")
        assert told.count("\n") == 1
        assert len(told) < 800


@pytest.fixture(scope="module")
def plan_file(made, tmp_path_factory) -> Path:
    planner = Planner.from_pretrained(made / "planner", "cpu").with_sampler(steps=1, repeats=1)
    return planner.plan((0, 0), (8, 8), n_chunks=2, n_candidates=1).save(tmp_path_factory.mktemp("plan") / "plan.npz")


def rewritten(source: Path, path: Path, shape: tuple[int, ...] | None = None, **changes) -> Path:
    """A plan's file with other arrays; or with states that say they have a shape, and are not there."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in (dict(np.load(source)) | changes).items():
            data = io.BytesIO()
            if name == "states" and shape is not None:
                head = {"descr": "<f4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(data, head)
            else:
                np.lib.format.write_array(data, array)
            archive.writestr(f"{name}.npy", data.getvalue())
    return path


def test_plans_that_cannot_be_are_refused(plan_file, tmp_path):
    meta = json.loads(str(np.load(plan_file)["meta"]))
    path = tmp_path / "other.npz"
    assert Plan.load(rewritten(plan_file, path)).n_chunks == 2
    changes = [{"meta": np.array(text)} for text in ("null", "[" * 3000 + "]" * 3000, "{}")]
    changes += [{"states": np.zeros(shape, kind)} for shape, kind in (((4,), float), ((4, 3), float), ((4, 2), "U3"))]
    changes += [{"shape": shape} for shape in ((10**9, 2), (2**62, 2))]
    for name in meta:
        for value in ({"a": None}, "x", DEEP, [None]):
            changes.append({"meta": np.array(json.dumps(meta | {name: value}))})
    changes += [{"meta": np.array(json.dumps(meta | {name: HUGE}))} for name in ("stride", "overlap")]
    for change in changes:
        rewritten(plan_file, path, **change)
        with little_room(), pytest.raises(UserError, match=r"is not a plan written by Plan\.save") as error:
            Plan.load(path)
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 500
    for data in (b"", b"hello", plan_file.read_bytes()[:-30]):
        path.write_bytes(data)
        with pytest.raises(UserError, match=r"is not a plan written by Plan\.save"):
            Plan.load(path)


def test_a_log_that_is_none_is_refused(tmp_path):
    for data in (b"step,loss,learning_rate,seconds\n\xff\xfe,1,1,1\n", b"a,b\n1,x,1,1\n"):
        (tmp_path / "log.csv").write_bytes(data)
        with pytest.raises(UserError, match=r"log.csv' is not the log of a training run"):
            TrainLog(tmp_path, TrainConfig(), 5, 0.0, show=False, write=True)
