import urllib.error

import ogbench
import pytest

from compdiffuser.data import official, storage
from compdiffuser.types import UserError

NAME = "pointmaze-giant-stitch-v0"


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COMPDIFFUSER_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize("where", [".ogbench/data", "home"])
def test_a_file_the_user_has_is_taken_byte_for_byte(three, folders, where):
    theirs = folders / where / f"{NAME}.npz"
    for path in (theirs, storage.validation_of(theirs)):
        storage.save(three, path, {})
        path.with_suffix(".json").unlink()  # OGBench has no manifests
    ours = official.fetch(NAME)
    assert ours == folders / "home" / "data" / f"{NAME}.npz"
    assert ours.read_bytes() == theirs.read_bytes()
    assert storage.manifest_of(ours)["source"] == "official"
    assert len(storage.load(NAME, split="val")) == 3


def test_without_a_file_ogbench_downloads_it(three, folders, monkeypatch, capsys):
    def download(names, dataset_dir):
        print("Downloading")
        storage.save(three, folders / ".ogbench" / "data" / f"{names[0]}.npz", {})

    monkeypatch.setattr(ogbench, "download_datasets", download)
    assert len(storage.load(official.fetch(NAME, folders / "mine.npz"))) == 3
    assert capsys.readouterr().out == ""  # stdout is for results


def test_a_download_that_was_cut_off_goes_on(three, folders, monkeypatch):
    theirs = folders / ".ogbench" / "data" / f"{NAME}.npz"
    storage.save(three, theirs, {})
    monkeypatch.setattr(
        ogbench, "download_datasets", lambda *_, **__: storage.save(three[:2], storage.validation_of(theirs), {})
    )
    official.fetch(NAME)
    assert len(storage.load(NAME, split="val")) == 2


def test_one_file_without_network_will_do(three, folders, monkeypatch):
    def download(*_, **__):
        raise urllib.error.URLError("Name or service not known")

    storage.save(three, folders / ".ogbench" / "data" / f"{NAME}.npz", {})
    monkeypatch.setattr(ogbench, "download_datasets", download)
    assert len(storage.load(official.fetch(NAME))) == 3


def test_no_network_is_one_sentence(monkeypatch):
    def download(*_, **__):
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr(ogbench, "download_datasets", download)
    with pytest.raises(UserError, match=r"nor can it be downloaded .*; make it with: compdiffuser data make"):
        official.fetch(NAME)


def test_it_is_written_to_an_npz_alone(folders):
    with pytest.raises(UserError, match=r"a dataset is written to a file ending in \.npz, not .*mine\.json"):
        official.fetch(NAME, folders / "mine.json")


def test_there_is_no_official_file_of_robotics():
    with pytest.raises(UserError, match="'robotics-pointmaze-umaze-v0' has no official file"):
        official.fetch("robotics-pointmaze-umaze-v0")
