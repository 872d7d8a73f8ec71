"""The queue and its one planning thread, without HTTP."""

import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest
from live import demanding

from compdiffuser import PlanConfig, Planner, SamplerConfig
from compdiffuser.types import UserError
from compdiffuser.web.messages import PlanRequest
from compdiffuser.web.scheduler import EVALUATIONS, ROWS, Closed, Full
from compdiffuser.web.service import Service, check
from compdiffuser.web.settings import Settings

QUICK = {"steps": 3, "repeats": 1}
PROBLEMS = [((0, 0), (4, 4)), ((20, 20), (0, 4)), ((4, 0), (8, 8)), ((0, 20), (0, 16)), ((20, 0), (16, 4))]


@pytest.fixture
def service(library):
    service = Service(Settings(queue=6, timeout=20), library)
    yield service
    if service.scheduler._thread.is_alive():
        service.scheduler.close()


def request(index: int = 0, **options) -> PlanRequest:
    start, goal = PROBLEMS[index % len(PROBLEMS)]
    return PlanRequest(model="tiny", start=start, goal=goal, **{**QUICK, "candidates": 6, "seed": index, **options})


def submit(service, *requests):
    jobs = [service.job(each) for each in requests]
    for job in jobs:
        service.submit(job)
    return jobs


class Batches:
    """Sizes of the batches that a service plans."""

    def __init__(self, service) -> None:
        self.sizes = []
        service.metrics.batch = lambda problems, seconds: self.sizes.append(problems)


def test_requests_that_wait_together_are_planned_in_one_batch(service):
    batches = Batches(service)
    jobs = submit(service, *(request(i, candidates=i + 1) for i in range(5)))
    service.scheduler.start()
    assert all(job.ended.result(20) for job in jobs)
    assert batches.sizes[0] == 5


def test_a_slow_machine_makes_small_batches_that_are_there_in_time(service, monkeypatch):
    """Fifty clients of a busy machine were told to come back for minutes: no batch was finished in time."""
    batches, advance = Batches(service), Planner.advance
    service.library.get("tiny")  # its trial is not slow

    def slowly(planner, searches, watch=None):
        rows = sum(proposal.n_chunks for search in searches for proposal in search.proposals())
        for _ in range(rows):
            time.sleep(0.05)
            watch(None)
        return advance(planner, searches)

    monkeypatch.setattr(Planner, "advance", slowly)
    jobs = submit(service, *(request(i, candidates=8, chunks=4, wave=2) for i in range(5)))  # 8 chunks each, 0.4 s
    for job in jobs:
        job.deadline = time.monotonic() + 1.2
    service.scheduler.start()
    for job in jobs:
        with pytest.raises(Full):
            job.ended.result(20)
    jobs = submit(service, *(request(i, candidates=2, chunks=4, wave=2) for i in range(2)))
    for job in jobs:
        job.deadline = time.monotonic() + 2.5
    assert all(job.ended.result(20) for job in jobs)
    assert batches.sizes[0] == 5
    assert batches.sizes[1] < 5


def test_a_plan_is_the_same_in_a_batch_of_strangers_and_alone_by_the_lines_in_its_reply(service, folder):
    requests = [request(i, chunks="auto" if i % 2 else 2) for i in range(5)]
    jobs = submit(service, *requests)
    service.scheduler.start()
    for asked, job in zip(requests, jobs, strict=True):
        reply = service.reply(asked, job, job.ended.result(20))
        config = PlanConfig(sampler=SamplerConfig(**QUICK), wave=reply.wave)
        alone = Planner.from_pretrained(folder, "cpu", config).plan(
            asked.start, asked.goal, n_chunks=asked.chunks, n_candidates=asked.candidates, seed=asked.seed
        )
        assert reply.n_chunks == alone.n_chunks
        np.testing.assert_allclose(reply.states, alone.states, atol=1e-3)
        assert reply.score == pytest.approx(alone.score, rel=1e-3)


def test_asking_what_comes_next_changes_nothing_and_a_plan_with_many_choices_of_k_is_the_planners_own(service, folder):
    asked = request(candidates=24)
    job = service.job(asked)
    job.search.choices = [1, 2, 3, 4, 5]
    demanding(job)
    job.on_wave = lambda: [job.next_rows for _ in range(3)]
    service.submit(job)
    service.scheduler.start()
    assert job.ended.result(20)
    planner = Planner.from_pretrained(folder, "cpu", job.planner.config)
    alone = planner.search(asked.start, asked.goal, "auto", 24, asked.seed)
    alone.choices = [1, 2, 3, 4, 5]
    while not alone.done:
        planner.advance([alone])
    assert [len(c.chunks) for c in job.search.candidates] == [len(c.chunks) for c in alone.candidates]
    assert job.search.choices == alone.choices != [1, 2, 3, 4, 5]
    np.testing.assert_allclose(job.planner.result(job.search).states, planner.result(alone).states, atol=1e-3)


@pytest.mark.slow
def test_alone_a_request_makes_a_full_wave_and_among_many_a_smaller_one_unless_it_names_its_own(service):
    service.scheduler.start()
    (alone,) = submit(service, request(candidates=64))
    alone.ended.result(20)
    assert alone.search.wave == 8
    service.scheduler.close()
    crowd = Service(service.settings, service.library)
    jobs = submit(crowd, *(request(i, candidates=64, wave=3 if i == 0 else None) for i in range(4)))
    crowd.scheduler.start()
    for job in jobs:
        job.ended.result(20)
    crowd.scheduler.close()
    assert [job.search.wave for job in jobs] == [3, 2, 2, 2]


def test_who_has_been_given_least_goes_first(service, monkeypatch):
    monkeypatch.setitem(ROWS, "cpu", 1)
    hard, later = service.job(request(candidates=64, wave=4)), service.job(request(1, candidates=1))
    demanding(hard)
    made = []
    hard.on_wave = lambda: made.append(len(hard.search.candidates)) or (len(made) == 1 and service.submit(later))
    later.on_wave = lambda: made.append("later")
    service.submit(hard)
    service.scheduler.start()
    assert later.ended.result(20)
    assert made[:2] == [4, "later"]


def test_a_wave_is_no_larger_than_is_efficient(service, monkeypatch):
    monkeypatch.setitem(ROWS, "cpu", 6)
    batches = Batches(service)
    jobs = submit(service, *(request(i, chunks=3, candidates=1) for i in range(5)))
    service.scheduler.start()
    assert all(job.ended.result(20) for job in jobs)
    assert batches.sizes == [2] * 5, "a fresh wave and a refined one for each of five"


def test_other_settings_are_another_batch_and_take_turns(service):
    batches = Batches(service)
    jobs = submit(service, *(request(i, steps=3 + i % 2, candidates=1) for i in range(4)))
    service.scheduler.start()
    assert all(job.ended.result(20) for job in jobs)
    assert batches.sizes == [2, 2] * 2, "fresh ones, then refined ones"


def test_one_bad_request_harms_no_other_in_its_batch(service):
    jobs = submit(service, *(request(i) for i in range(4)))
    jobs[2].search.choices = []  # no number of chunks to try: the whole batch fails
    service.scheduler.start()
    for index, job in enumerate(jobs):
        if index == 2:
            with pytest.raises(ZeroDivisionError):
                job.ended.result(20)
        else:
            assert job.ended.result(20)
    (after,) = submit(service, request())
    assert after.ended.result(20)


def test_a_listener_that_fails_ends_its_own_request_only(service):
    def stumble(index, seen):
        raise ConnectionError("gone")

    jobs = submit(service, *(request(i) for i in range(3)))
    jobs[1].on_round = stumble
    service.scheduler.start()
    with pytest.raises(ConnectionError):
        jobs[1].ended.result(20)
    assert jobs[0].ended.result(20)
    assert jobs[2].ended.result(20)


def test_a_full_queue_says_when_to_come_back_and_has_room_again_when_someone_leaves(service):
    jobs = submit(service, *(request(i) for i in range(6)))
    with pytest.raises(Full, match="the queue is full; try again in") as refusal:
        submit(service, request())
    assert refusal.value.retry_after >= 1
    jobs[0].ended.cancel()
    submit(service, request())


def test_who_would_wait_for_longer_than_it_may_is_told_at_once(service):
    service.scheduler.pace = 15.0
    submit(service, request(), request(1))
    with pytest.raises(Full, match="try again in 15 s"):
        submit(service, request(2))


def test_nobody_plans_for_someone_who_has_left(service):
    begun, rounds = threading.Event(), []

    def watch(index, seen):
        rounds.append(seen.index)
        begun.set()
        time.sleep(0.02)

    (job,) = submit(service, request(steps=30, candidates=64, wave=40))
    job.on_round = watch
    service.scheduler.start()
    assert begun.wait(20)
    job.ended.cancel()
    (other,) = submit(service, request(candidates=1))
    assert other.ended.result(20)
    assert len(rounds) < 30
    assert not job.search.candidates


def test_a_request_that_takes_too_long_gets_what_there_is_or_a_refusal(service):
    late, partly = submit(service, request(), request(1, candidates=64, wave=1))
    late.deadline = time.monotonic() - 1
    partly.on_wave = lambda: setattr(partly, "deadline", 0.0)
    demanding(partly)
    service.scheduler.start()
    with pytest.raises(Full, match="no plan was made in time, since others were planned for; try again in 1 s"):
        late.ended.result(20)
    assert partly.ended.result(20) is False
    assert len(partly.search.candidates) < 64


def test_a_server_that_stops_ends_all_requests(service):
    running, waiting = submit(service, request(steps=30, candidates=64, wave=40), request(steps=29))
    begun = threading.Event()
    for job in (running, waiting):
        job.on_round = lambda index, seen: (begun.set(), time.sleep(0.02))
    service.scheduler.start()
    assert begun.wait(20)
    service.scheduler.close()
    for job in (running, waiting):
        with pytest.raises(Closed, match="the server is stopping"):
            job.ended.result(5)
    with pytest.raises(Closed):
        submit(service, request())


def test_a_wave_stays_short_whatever_it_is_asked_for(service):
    heavy = request(chunks=3, steps=64, repeats=16, wave=40)
    (job,) = submit(service, heavy)
    job.on_round = lambda index, seen: job.ended.cancel()
    service.scheduler.start()
    with pytest.raises(CancelledError):
        job.ended.result(20)
    evaluations = check(heavy, job.planner, service.settings.limits)
    assert job.search.wave == EVALUATIONS["cpu"] // evaluations < 40
    with pytest.raises(UserError, match="wave may be at most 42 with up to 3 chunks here, not 43"):
        service.job(request(wave=43))


def test_who_leaves_takes_their_share_of_the_time_along(service):
    service.scheduler.pace = 5.0
    jobs = submit(service, *(request(i) for i in range(3)))
    service.scheduler._since = 6.0
    for job in jobs[:2]:
        job.ended.cancel()
    submit(service, request())
    assert service.scheduler.pace == pytest.approx(5.0 + 0.3 * (3.0 - 5.0))
    assert service.scheduler._since == 0


def test_every_end_is_counted_once(service):
    late, failed, left, fine = submit(service, *(request(i) for i in range(4)))
    late.deadline = 0.0
    failed.search.choices = []
    left.ended.cancel()
    service.scheduler.start()
    assert fine.ended.result(20)
    (after,) = submit(service, request())
    assert after.ended.result(20)
    until = time.monotonic() + 5  # an end is counted a moment after it is told
    while sum(service.metrics._plans.values()) < 5 and time.monotonic() < until:
        time.sleep(0.01)
    counted = service.metrics.text(0, 0)
    for outcome in ("late", "failed", "cancelled"):
        assert f'plans_total{{outcome="{outcome}"}} 1\n' in counted
    assert sum(service.metrics._plans.values()) == 5


def test_the_planning_thread_outlives_a_fault_in_the_choice_of_the_next_wave(service):
    (bad,) = submit(service, request())
    bad.search.candidates = None
    service.scheduler.start()
    with pytest.raises(TypeError):
        bad.ended.result(20)
    (after,) = submit(service, request())
    assert after.ended.result(20)
