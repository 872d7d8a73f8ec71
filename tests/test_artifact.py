"""Weights on disk: whole or refused, whoever writes them meanwhile and however that ends."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from safetensors.numpy import save as serialize

from compdiffuser import artifact
from compdiffuser.artifact import Artifact, arrays, kind_of, load, read_config, save, tensors
from compdiffuser.files import sha256
from compdiffuser.types import UserError

WRITER = """
import itertools, sys
import numpy as np
from compdiffuser.artifact import Artifact, save
assert "torch" not in sys.modules
for number in itertools.count():
    sizes = {"model": 50_000, "support": 999}
    parts = {name: {"weight": np.full(size, number, np.float32)} for name, size in sizes.items()}
    if number % 3 == 2:
        del parts["support"]
    save(sys.argv[1], Artifact("planner", 1, {"number": number}, parts))
"""


def planner(number: float = 1.0, **config) -> Artifact:
    part = {"weight": np.full((2, 3), number, np.float16), "bias": np.arange(3, dtype=np.float32)}
    return Artifact("planner", 1, config, {"model": part, "support": {"segments": np.ones((4, 2, 2), np.float16)}})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def edit(folder: Path, **changes) -> None:
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**values, **changes}))


def test_what_is_saved_is_loaded(tmp_path):
    made = planner(2.0, scale=[0.5, 1.5], name="größer")
    assert save(tmp_path / "a" / "b", made) == tmp_path / "a" / "b"
    found = load(tmp_path / "a" / "b", "planner", 1)
    assert (found.kind, found.format, found.config) == ("planner", 1, made.config)
    assert {name: {*part} for name, part in found.parts.items()} == {
        "model": {"weight", "bias"}, "support": {"segments"},
    }  # fmt: skip
    for name, part in made.parts.items():
        for key, array in part.items():
            np.testing.assert_array_equal(found.parts[name][key], array)
            assert found.parts[name][key].dtype == array.dtype
    assert found.hashes["model"] == sha256(tmp_path / "a" / "b" / "model.safetensors")
    assert kind_of(tmp_path / "a" / "b") == "planner"


def test_a_new_version_never_overwrites_what_the_old_config_names(tmp_path):
    save(tmp_path, planner(1.0))
    assert names(tmp_path) == ["config.json", "model.safetensors", "support.safetensors"]
    save(tmp_path, planner(2.0, note="other weights, the same support"))
    config, model, support = names(tmp_path)
    assert model.startswith("model-")
    assert (config, support) == ("config.json", "support.safetensors")
    save(tmp_path, Artifact("planner", 1, {}, {"model": planner(3.0).parts["model"]}))
    assert names(tmp_path) == ["config.json", "model.safetensors"], "parts that are no longer named are removed"


@pytest.mark.parametrize("stop", ["model", "support", "config.json"])
def test_a_writer_that_fails_leaves_the_old_artifact(tmp_path, monkeypatch, stop):
    """A disk that fills up before the commit point."""
    save(tmp_path, planner(1.0))

    def full(path, of=artifact.replacing, **options):
        if path.name.startswith(stop):
            raise UserError(f"cannot write '{path}': no space is left on the device")
        return of(path, **options)

    monkeypatch.setattr(artifact, "replacing", full)
    monkeypatch.setattr(artifact, "write_json", lambda path, value: full(path))
    other = Artifact("planner", 1, {}, {"model": planner(2.0).parts["model"], "support": {"segments": np.zeros(3)}})
    with pytest.raises(UserError, match="no space is left"):
        save(tmp_path, other)
    monkeypatch.undo()
    assert load(tmp_path, "planner", 1).parts["model"]["weight"][0, 0] == 1.0
    save(tmp_path, other)
    assert len(names(tmp_path)) == 3, "what the failed writer left is swept"
    assert load(tmp_path, "planner", 1).parts["model"]["weight"][0, 0] == 2.0


def whole(found: Artifact) -> int:
    """The number of the save that all of an artifact is from."""
    number = found.config["number"]
    assert {*found.parts} == ({"model"} if number % 3 == 2 else {"model", "support"})
    assert all((part["weight"] == number).all() for part in found.parts.values())
    return number


def test_a_killed_writer_leaves_one_whole_artifact_and_readers_never_see_a_mixture(tmp_path):
    seen, rounds = 0, 5
    for _ in range(rounds):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stderr=subprocess.PIPE)
        before = (tmp_path / "config.json").exists() and (tmp_path / "config.json").stat().st_mtime_ns
        while not (tmp_path / "config.json").exists() or (tmp_path / "config.json").stat().st_mtime_ns == before:
            assert writer.poll() is None, writer.stderr.read().decode()
            time.sleep(0.001)
        until = time.monotonic() + random.uniform(0.05, 0.3)
        while time.monotonic() < until:
            whole(load(tmp_path, "planner", 1))
            seen += 1
        writer.kill()
        writer.communicate()
        assert writer.returncode == -signal.SIGKILL, "the writer failed before it was killed"
        whole(load(tmp_path, "planner", 1))
    assert seen > rounds
    save(tmp_path, Artifact("planner", 1, {"number": 0}, load(tmp_path, "planner", 1).parts))
    assert len([name for name in names(tmp_path) if not name.startswith(".")]) <= 3, "leftovers are swept"


def test_a_part_that_vanishes_while_it_is_read_is_read_anew(tmp_path, monkeypatch):
    save(tmp_path, planner(1.0))
    replaced = []

    def slow(path, of=artifact.read_json):
        values = of(path)
        if not replaced:
            replaced.append(values)
            save(tmp_path, planner(2.0))
        return values

    monkeypatch.setattr(artifact, "read_json", slow)
    assert load(tmp_path, "planner", 1).parts["model"]["weight"][0, 0] == 2.0


def test_the_shipped_names_of_parts_are_accepted(tmp_path):
    data = serialize({"network.0.weight": np.ones((2, 2), np.float32)})
    (tmp_path / "weights-of-old.safetensors").write_bytes(data)
    digest = sha256(tmp_path / "weights-of-old.safetensors")
    listed = {"actor": {"file": "weights-of-old.safetensors", "sha256": digest}}
    (tmp_path / "config.json").write_text(json.dumps({"kind": "expert", "format": 2, "parts": listed, "noise": 0.2}))
    found = load(tmp_path, "expert", 2, parts=("actor",))
    assert (found.config, found.hashes) == ({"noise": 0.2}, {"actor": digest})
    with pytest.raises(UserError, match=r"the expert '.*' has no part 'model'"):
        load(tmp_path, "expert", 2)


def refused(folder: Path, sentence: str, kind: str = "planner", format: int = 1) -> None:
    with pytest.raises(UserError, match=sentence) as error:
        load(folder, kind, format)
    assert "\n" not in str(error.value)


def test_what_is_no_artifact_of_the_kind_is_refused(tmp_path):
    refused(tmp_path / "nowhere", r"there is no planner at '.*nowhere'")
    refused(tmp_path, r"config.json' does not exist")
    save(tmp_path, planner())
    refused(tmp_path, "holds a planner, not an expert", kind="expert")
    refused(tmp_path, "has planner format 1, this version reads 7", format=7)
    save(tmp_path / "expert", Artifact("expert", 1, {}, {}))
    refused(tmp_path / "expert", "holds an expert, not a planner")
    (tmp_path / "config.json").write_text('{"format": 0, "denoiser": {}}')
    refused(tmp_path, "has planner format 0, this version reads 1")
    assert kind_of(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not readable JSON"),
        ("[" * 100_000, "is not readable JSON"),
        ("[]", "does not describe a planner: it has no 'kind'"),
        ('{"parts": {}}', "does not describe a planner: it has no 'kind'"),
        ('{"kind": "planner", "format": 1}', "does not list its parts"),
        ('{"kind": "planner", "format": 1, "parts": []}', "does not list its parts"),
        ('{"kind": "planner", "format": 1, "parts": {"model": null}}', "does not list its parts"),
        ('{"kind": "planner", "format": 1, "parts": {"model": {"file": 3, "sha256": ""}}}', "does not list its parts"),
        (
            '{"kind": "planner", "format": 1, "parts": {"model": {"file": "../x.safetensors", "sha256": ""}}}',
            "names a file '../x.safetensors', which is no part of a planner",
        ),
        ('{"kind": "planner", "format": 1, "parts": {}}', "has no part 'model'"),
    ],
)
def test_configs_that_describe_nothing_are_refused(tmp_path, text, sentence):
    (tmp_path / "config.json").write_text(text)
    refused(tmp_path, sentence)


def test_damaged_parts_are_refused(tmp_path):
    save(tmp_path / "whole", planner())
    for damage, sentence in (
        (lambda data: data[:-1], r"model.safetensors' is corrupt: it is not the file that config.json describes"),
        (lambda data: b"", r"model.safetensors' is corrupt"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), r"model.safetensors' is corrupt"),
    ):
        copy = shutil.copytree(tmp_path / "whole", tmp_path / "copy", dirs_exist_ok=True)
        path = copy / "model.safetensors"
        path.write_bytes(damage(path.read_bytes()))
        refused(copy, sentence)
    path.unlink()
    refused(copy, r"the planner '.*copy' has no model.safetensors")


def listing(folder: Path, data: bytes) -> None:
    """A part as a stranger may have made it: its hash is right."""
    (folder / "model.safetensors").write_bytes(data)
    edit(folder, parts={"model": {"file": "model.safetensors", "sha256": sha256(folder / "model.safetensors")}})


def test_what_is_no_safetensors_file_is_refused(tmp_path):
    save(tmp_path, planner())
    listing(tmp_path, b"not a file of weights")
    refused(tmp_path, r"model.safetensors' is corrupt: ")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_values_that_are_not_finite_are_refused(tmp_path, value, kind):
    save(tmp_path, planner())
    wrong = {"weight": np.array([0, value], kind)}
    with pytest.raises(UserError, match="part 'model' of the planner holds values that are not finite, in 'weight'"):
        save(tmp_path, Artifact("planner", 1, {}, {"model": wrong}))
    assert load(tmp_path, "planner", 1).parts["model"]["weight"][0, 0] == 1.0, "what was there before is kept"
    listing(tmp_path, serialize(wrong))
    refused(tmp_path, r"model.safetensors' holds values that are not finite, in 'weight'")


def test_names_that_cannot_be_are_refused():
    with pytest.raises(UserError, match=r"'parts' is a name that config.json uses itself"):
        Artifact("planner", 1, {"parts": 3}, {})
    for name in ("", "a/b", "Model", ".."):
        with pytest.raises(UserError, match="a part's name is made of small letters"):
            Artifact("planner", 1, {}, {name: {}})


def test_a_config_can_be_looked_at(tmp_path):
    assert read_config(tmp_path) is None
    (tmp_path / "config.json").write_text("[1]")
    assert read_config(tmp_path) is None
    (tmp_path / "config.json").write_text('{"method": "gcbc"}')
    assert read_config(tmp_path) == {"method": "gcbc"}
    assert kind_of(tmp_path) is None


def test_tensors_make_the_round_trip(tmp_path):
    torch.manual_seed(0)
    state = {"weight": torch.randn(3, 2).T, "scale": torch.tensor(0.5), "count": torch.tensor([3, 4])}
    save(tmp_path, Artifact("planner", 1, {}, {"model": arrays(state)}))
    found = tensors(load(tmp_path, "planner", 1).parts["model"])
    for name, tensor in state.items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=0)
    found["weight"].add_(1)  # memory of its own
    halves = arrays(state, half=True)
    assert {name: array.dtype.name for name, array in halves.items()} == {
        "weight": "float16", "scale": "float16", "count": "int64",
    }  # fmt: skip
    assert tensors(halves)["weight"].dtype == torch.float32
    assert load_file(tmp_path / "model.safetensors")["scale"].shape == ()
