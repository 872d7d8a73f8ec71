"""How a server holds up: the page's first second, one client, fifty, and fifty beside a thousand that say nothing.

    python benchmarks/serving_load.py --hardware "two CPU cores"
    python benchmarks/serving_load.py --endurance --minutes 10 --idle-minutes 4 --hardware "two CPU cores"

Every request is a problem of its own: random cells of the giant maze at most eight steps apart, all options as they are
by default. A client asks again as soon as it is answered; one that is told to come back does so when it was told. The
machine should be idle. `--endurance` looks at answers and memory alone, and writes results/serving_endurance.json.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import shutil
import socket
import statistics
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from figures import Figures
from reproduce import Clock, command, resident
from serving import served

from compdiffuser.presets import preset

MODEL = "pointmaze-giant-stitch-v0"
STEPS = 8
"""Cells between start and goal at most. Further ones can take a minute each, too few to measure anything in one."""


@dataclass(frozen=True)
class Benchmark:
    results: Path = Path("results")
    hardware: str = "this machine"
    clients: int = 50
    minutes: float = 1.0
    """Of the measurement with several clients, after the warm-up; those with a single client take one."""
    idle_minutes: float = 1.0
    """Of the measurement beside idle connections."""
    endurance: bool = False
    """Leave out the page and the single client, and figures of speed."""
    warm_up: float = 20.0
    """Seconds until all clients have been answered about once."""
    idle: int = 1000
    """Connections that say nothing, or a byte a second, beside the clients; one that is closed comes again."""


@dataclass
class Load:
    """What a number of clients saw."""

    seconds: float
    """From the beginning to the end, warm-up included."""
    answered: list[tuple[float, float, dict[str, Any]]] = field(default_factory=list)
    """When, after how many seconds, and what."""
    refused: int = 0
    errors: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    """MiB of the server, once a second."""

    def after(self, moment: float) -> list[tuple[float, float, dict[str, Any]]]:
        return [answer for answer in self.answered if answer[0] >= moment]

    def rate(self, warm_up: float) -> float:
        """Plans per second."""
        return len(self.after(warm_up)) / (self.seconds - warm_up)


def main() -> None:
    options = tyro.cli(Benchmark)
    busy = [round(value, 2) for value in os.getloadavg()]  # of others, before anything is measured
    about = {"load_average": busy, "model": MODEL, "clients": options.clients, "idle": options.idle}
    about |= {"minutes": options.minutes, "idle_minutes": options.idle_minutes, "warm_up": options.warm_up}
    asked = ("endurance", "clients", "minutes", "idle_minutes", "warm_up", "idle")
    told = command("python benchmarks/serving_load.py", options, asked).replace("--endurance True", "--endurance")
    group = "endurance" if options.endurance else "serving"
    out = options.results / f"serving_{'endurance' if options.endurance else 'load'}.json"
    note = Figures(out, told, options.hardware, group, about=about).note
    with served() as (address, server, log):
        loads = measured(address, server, options, note)
    for who, load in loads.items():
        speed(who, load, options.warm_up, note, briefly=options.endurance)
    crowd, besieged = list(loads)[-2:]
    rates = {who: load.rate(options.warm_up) for who, load in loads.items()}
    if not options.endurance:
        one, sparing = list(loads)[:2]
        note(f"{crowd} against one", rates[crowd] / rates[one], "×", target=3, bound="at least")
        note(f"{crowd} against one that asks for waves of 1", rates[crowd] / rates[sparing], "×")
    for who in (crowd, besieged):
        note(f"{who}, errors other than 429", len(loads[who].errors), "", target=0)
        note(f"{who}, answers 429", loads[who].refused, "")
    note(f"{besieged}, share of the plans", rates[besieged] / rates[crowd], "×", target=0.5, bound="at least")
    note("tracebacks in the log", log().count("Traceback"), "", target=0)
    settled = loads[crowd].memory[int(options.warm_up) :] + loads[besieged].memory
    tenth = len(settled) // 10
    first, last = statistics.mean(settled[:tenth]), statistics.mean(settled[-tenth:])
    note("memory of the server, first tenth of the time with several clients", first, "MiB")
    note("memory of the server, last tenth of the time with several clients", last, "MiB", target=round(1.1 * first))
    for error in dict.fromkeys(error for load in loads.values() for error in load.errors):
        print("error:", error, flush=True)


def measured(
    address: str, server: subprocess.Popen[str], options: Benchmark, note: Callable[..., None]
) -> dict[str, Load]:
    """What clients saw, by who they were."""
    alone, together, strained = (options.warm_up + 60 * each for each in (1, options.minutes, options.idle_minutes))
    crowd, loads = f"{options.clients} clients", dict[str, Load]()
    if not options.endurance:
        if shutil.which("chromium"):
            first_second(address, note)
        loads["one client"] = run(address, server, 1, alone)
        loads["one client that asks for waves of 1"] = run(address, server, 1, alone, wave=1)
    loads[crowd] = run(address, server, options.clients, together)
    with idlers(address, options.idle):
        loads[f"{crowd} beside {options.idle} idle connections"] = run(address, server, options.clients, strained)
    return loads


def speed(who: str, load: Load, warm_up: float, note: Callable[..., None], briefly: bool) -> None:
    """How fast answers came, and how good they were."""
    answers = load.after(warm_up)
    seconds = sorted(taken for _, taken, _ in answers)
    count = ("plans", len(answers), "") if briefly else ("plans per second", load.rate(warm_up), "1/s")
    note(f"{who}, {count[0]}", *count[1:])
    note(f"{who}, seconds to a plan, median", statistics.median(seconds), "s")
    note(f"{who}, seconds to a plan, 95%", seconds[int(0.95 * (len(seconds) - 1))], "s")
    if briefly:
        return
    note(f"{who}, share of plans certified", statistics.mean(plan["ok"] for _, _, plan in answers), "")
    scores = [plan["score"] for *_, plan in answers]
    note(f"{who}, score of a plan, median (lower is better)", statistics.median(scores), "")


def run(address: str, server: subprocess.Popen[str], clients: int, end: float, **asked: Any) -> Load:
    """So many clients at once for `end` seconds, each asking again as soon as it is answered."""
    load, clock = Load(end), Clock()

    def watch() -> None:
        while clock.seconds < end:
            load.memory.append(resident(server.pid))
            time.sleep(1)

    def ask(number: int) -> None:
        problems = problem_stream(1000 * clients + number)
        while (sent := clock.seconds) < end:
            body = json.dumps({"model": MODEL, **next(problems), **asked}).encode()
            request = urllib.request.Request(f"{address}/v1/plan", body, {"content-type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=120) as reply:
                    plan = json.load(reply)
                now = clock.seconds
                if now < end:
                    load.answered.append((now, now - sent, {name: plan[name] for name in ("ok", "score")}))
            except urllib.error.HTTPError as error:
                if error.code == 429:
                    load.refused += 1
                    time.sleep(float(error.headers["retry-after"]))
                else:
                    load.errors.append(f"{error.code}: {error.read()[:200]!r}")
            except OSError as error:
                load.errors.append(repr(error))

    threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(clients)]
    threads.append(threading.Thread(target=watch))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return load


@contextmanager
def idlers(address: str, count: int) -> Iterator[None]:
    """Connections that keep silent, or send a head by a byte a second, held by a process of their own."""
    context = multiprocessing.get_context("spawn")
    over = context.Event()
    holding = context.Process(target=hold, args=(address, count, over), daemon=True)
    holding.start()
    try:
        yield
    finally:
        over.set()
        holding.join()


def hold(address: str, count: int, over: Any) -> None:
    """Hold so many connections until it is over; one that is closed is opened again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 2 * count), hard), hard))
    host, port = address.removeprefix("http://").split(":")
    held: dict[int, socket.socket] = {}
    while not over.wait(1.0):
        for number in range(count):
            try:
                if number not in held:
                    held[number] = socket.create_connection((host, int(port)), timeout=5)
                    held[number].setblocking(False)
                if number % 2:
                    held[number].send(b"G")
                if held[number].recv(4096) == b"":
                    raise ConnectionResetError
            except BlockingIOError:
                pass  # it is still open, and has nothing to say
            except OSError:
                held.pop(number, None)


def problem_stream(seed: int) -> Iterator[dict[str, Any]]:
    """Random pairs of free cells at most `STEPS` steps apart, never the same twice, each with its own seed."""
    layout, rng = preset(MODEL).maze, np.random.default_rng(seed)
    assert layout is not None
    cells = layout.free_cells
    while True:
        ends = [cells[rng.integers(len(cells))] for _ in range(2)]
        if layout.distances(ends[1])[ends[0]] <= STEPS:
            start, goal = ((layout.center(cell) + rng.uniform(-1, 1, 2)).tolist() for cell in ends)
            yield {"start": start, "goal": goal, "seed": int(rng.integers(2**20))}


def first_second(address: str, note: Callable[..., None]) -> None:
    """How soon the page can be used, and how soon after the click the first frame is there."""
    from playwright.sync_api import sync_playwright

    ready, frame = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for _ in range(5):
            page = browser.new_context().new_page()
            clock = Clock()
            page.goto(address)
            page.wait_for_selector("html[data-ready]")
            ready.append(clock.seconds)
            clock = Clock()
            page.click("#plan")
            page.wait_for_selector("article[data-frames]")
            frame.append(clock.seconds)
            page.context.close()
            time.sleep(1)
        browser.close()
    note("page can be used after its address was entered, slowest of 5", max(ready), "s", target=1)
    note("first frame on the page after the click, slowest of 5", max(frame), "s", target=0.5)


if __name__ == "__main__":
    main()
