import errno
import json
import os
import platform
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from lives import kill, start

from compdiffuser import files
from compdiffuser.files import check_writable, locked, read_json, replacing, sha256, sync_folder, write_json
from compdiffuser.types import UserError


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_when_the_block_ends_well(tmp_path):
    path = tmp_path / "new" / "folder" / "file.txt"
    with replacing(path) as temporary:
        temporary.write_text("whole")
        assert not path.exists()
        assert temporary.parent == path.parent  # a rename within one file system
    assert path.read_text() == "whole"
    assert names(path.parent) == ["file.txt"]


def test_who_reads_the_old_file_meanwhile_reads_it_whole(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with open(path) as reader:
        with replacing(path) as temporary:
            temporary.write_text("new and longer")
        assert reader.read() == "old"
    assert path.read_text() == "new and longer"


def test_the_old_file_stays_when_the_block_fails(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def half_written() -> None:
        with replacing(path) as temporary:
            temporary.write_text("hal")
            raise RuntimeError("the process changed its mind")

    with pytest.raises(RuntimeError, match="changed its mind"):
        half_written()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file.txt"]


def test_an_interrupt_leaves_nothing_behind(tmp_path):
    def interrupted() -> None:
        with replacing(tmp_path / "file.txt") as temporary:
            temporary.write_text("hal")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOSPC, "no space is left on the device"),
        (errno.EACCES, "permission denied"),
        (errno.EROFS, "read-only"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_what_the_system_refuses_is_a_sentence(tmp_path, code, reason):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def refused() -> None:
        with replacing(path) as temporary:
            temporary.write_text("hal")
            raise OSError(code, "as the system says")

    expected = reason if code != errno.EIO else "as the system says"
    with pytest.raises(UserError) as error:
        refused()
    assert str(error.value) == f"cannot write '{path}': {expected}"
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file.txt"]


def test_a_folder_that_is_a_file_is_a_sentence(tmp_path):
    (tmp_path / "taken").write_text("I am a file")
    with pytest.raises(UserError, match=r"cannot write '.*taken/file.json'"):
        write_json(tmp_path / "taken" / "file.json", {})
    with pytest.raises(UserError, match=r"cannot write '.*taken/deeper/file.json'"):
        write_json(tmp_path / "taken" / "deeper" / "file.json", {})
    assert (tmp_path / "taken").read_text() == "I am a file"


def test_a_target_that_is_a_folder_is_a_sentence(tmp_path):
    (tmp_path / "file.json").mkdir()
    with pytest.raises(UserError, match=r"cannot write '.*file.json'"):
        write_json(tmp_path / "file.json", {})
    assert names(tmp_path) == ["file.json"]


def test_names_reach_the_disk_in_order(tmp_path, monkeypatch):
    """A file before its name, and the name of each new folder before what lies in it."""
    synced = []

    def sync(number):
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{number}"), tmp_path))

    monkeypatch.setattr(os, "fsync", sync)
    write_json(tmp_path / "a" / "b" / "file.json", 1)
    assert synced[:2] == [".", "a"]
    assert synced[2].startswith(os.path.join("a", "b", ".file.json"))
    assert synced[3:] == [os.path.join("a", "b")]


def test_a_folder_that_cannot_be_synced_is_no_failure(tmp_path):
    sync_folder(tmp_path / "nowhere")


def test_a_path_is_tried_before_work_begins(tmp_path, monkeypatch):
    check_writable(tmp_path / "new" / "folder" / "file.json")
    assert names(tmp_path / "new" / "folder") == []
    with pytest.raises(UserError, match=r"cannot write '.*': it is a folder"):
        check_writable(tmp_path)
    (tmp_path / "taken").write_text("I am a file")
    with pytest.raises(UserError, match=r"cannot write '.*taken/x.json': "):
        check_writable(tmp_path / "taken" / "x.json")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UserError, match=r"cannot write '.*x.json': permission denied"):
        check_writable(tmp_path / "x.json")


def test_json_makes_the_round_trip(tmp_path):
    value = {"σ": [0.1, 0.2], "name": "größer", "nothing": None}
    write_json(tmp_path / "file.json", value)
    assert read_json(tmp_path / "file.json") == value
    assert "σ" in (tmp_path / "file.json").read_text(encoding="utf-8")


def test_json_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.json"
    write_json(path, [1])
    with pytest.raises(TypeError):
        write_json(path, {"a set": {1, 2}})
    assert json.loads(path.read_text()) == [1]
    assert names(tmp_path) == ["file.json"]


@pytest.mark.parametrize("content", [b"{", b"", b"\xff\xfe\x00broken", b"[" * 100_000])
def test_broken_json_is_a_sentence(tmp_path, content):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"file.json' is not readable JSON: ") as error:
        read_json(path)
    assert "\n" not in str(error.value)


def test_missing_json_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match=r"file.json' does not exist"):
        read_json(tmp_path / "file.json")
    with pytest.raises(UserError, match="is not readable JSON"):
        read_json(tmp_path)


def test_sha256(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert sha256(tmp_path / "file") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


WRITING = """
import sys, time
from compdiffuser.files import locked, replacing
with locked(sys.argv[1], "trains in"), replacing(sys.argv[1] + "/file.txt") as temporary:
    temporary.write_text("hal")
    print("begun", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_what_a_killed_process_left_is_swept_and_its_lock_is_no_more(tmp_path, monkeypatch):
    writer = start(WRITING, tmp_path)
    assert writer.stdout.readline() == "begun\n"
    sentence = rf"process {writer.pid} on .* trains in '.*' already; wait for its end"
    with pytest.raises(UserError, match=sentence) as said, locked(tmp_path, "trains in"):
        pass
    assert "\n" not in str(said.value)
    half = f".file.txt.{platform.node()}.{writer.pid}.tmp"
    write_json(tmp_path / "other.json", 1)
    assert names(tmp_path) == [half, ".lock", "other.json"]  # of a living process
    kill(writer)
    monkeypatch.setattr(files, "_swept", set())  # as in a new process
    with locked(tmp_path, "trains in"):
        write_json(tmp_path / "other.json", 1)
    assert names(tmp_path) == ["other.json"]


def test_only_what_this_machine_left_half_written_is_swept(tmp_path):
    over = 2**22 + 1  # larger than any process's number
    here, there = f".a.json.{platform.node()}.{over}.tmp", f".a.json.elsewhere-{platform.node()}.{over}.tmp"
    kept = [there, f".a.json.{platform.node()}.{os.getpid()}.tmp", "a.tmp", f"a.{over}.tmp", ".hidden"]
    for name in (here, *kept):
        (tmp_path / name).write_text("half")
    write_json(tmp_path / "b.json", 1)
    assert names(tmp_path) == sorted(["b.json", *kept])


def test_a_lock_has_one_holder_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "GRACE", 0.0)
    refused = []

    def second() -> None:
        try:
            with locked(tmp_path / "data.npz", "records"):
                refused.append(None)
        except UserError as error:
            refused.append(str(error))

    with locked(tmp_path / "data.npz", "records"):
        second()
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        with locked(tmp_path / "other.npz", "records"):
            pass
        with locked(tmp_path, "trains in"):
            pass
    second()
    expected = f"process {os.getpid()} on {platform.node()} records '{tmp_path / 'data.npz'}' already"
    assert [text and text.startswith(expected) for text in refused] == [True, True, None]
    assert names(tmp_path) == []


def test_an_error_ends_a_lock(tmp_path):
    for _ in range(2):
        with pytest.raises(RuntimeError, match="changed its mind"), locked(tmp_path, "trains in"):
            raise RuntimeError("changed its mind")


def test_a_lock_that_cannot_be_had_is_a_sentence(tmp_path):
    (tmp_path / "taken").write_text("I am a file")
    with pytest.raises(UserError, match=r"cannot write '.*taken/x': "), locked(tmp_path / "taken" / "x", "records"):
        pass


def test_threads_that_write_the_same_file_do_not_meet(tmp_path):
    path = tmp_path / "file.txt"
    with ThreadPoolExecutor(1) as pool, replacing(path) as temporary:
        temporary.write_text("half of ")
        pool.submit(lambda: write_json(path, "another")).result()
        assert json.loads(path.read_text()) == "another"
        with open(temporary, "a") as file:
            file.write("it")
    assert path.read_text() == "half of it"
    assert [each.name for each in tmp_path.iterdir()] == ["file.txt"]


def test_what_a_thread_of_a_killed_process_left_is_swept(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    left = tmp_path / f".file.txt.{platform.node()}.{process.pid}-140212.tmp"
    left.touch()
    write_json(tmp_path / "file.txt", 1)
    assert not left.exists()
