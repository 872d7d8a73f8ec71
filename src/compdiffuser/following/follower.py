"""A planner and a controller as one policy: plan all episodes at once, follow, and plan again where an agent is lost.

Replanning follows the paper's appendix: an agent too far from its subgoal gets a new plan, made of fewer chunks the
more of the old plan lies behind it. Every decision is kept, so that a failed episode can be explained.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from compdiffuser.domains import Controller
from compdiffuser.following.asking import BatchPlanner, possible, seeds
from compdiffuser.following.controllers import controller_for, seen_columns
from compdiffuser.following.decision import Decision
from compdiffuser.following.falls import Falls
from compdiffuser.following.freeing import RETREAT, freed, look_back
from compdiffuser.following.settings import Following
from compdiffuser.following.stops import Stop, stops_of, through
from compdiffuser.following.tracking import (
    look_ahead,
    nearest_ahead,
    pad_paths,
    receding_chunks,
    scale_of,
    without_loops_between,
)
from compdiffuser.planning.plan import Plan
from compdiffuser.planning.problem import Chunks
from compdiffuser.planning.steering.steering import Waypoint
from compdiffuser.presets import Preset
from compdiffuser.types import Array, UserError, counted

PHASE = 24
"""Planned states ahead among which the nearest in place and posture is looked for."""


class PlanFollower:
    """A `Policy` that plans, follows and replans E episodes side by side."""

    def __init__(
        self,
        planner: BatchPlanner,
        preset: Preset,
        following: Following | None = None,
        controller: Controller | None = None,
    ) -> None:
        self.planner = planner
        self.preset = preset
        self.space, self.body = preset.space, preset.domain.body
        self.asked = preset.domain.asked
        self.following = following or Following()
        # A copy: what a controller remembers of its episodes is nobody else's.
        self.controller = copy.copy(controller or controller_for(preset))
        self.seen = seen_columns(self.controller, preset)
        self.look_ahead = self.following.look_ahead or self.controller.look_ahead
        self.spacing = self.controller.spacing or self.look_ahead / 2
        self.stall = self.controller.stall
        self.retreat = min(2 * self.look_ahead, RETREAT * preset.execution.replan_distance)
        self.patience = self.following.patience or self.controller.patience
        self.ahead = max(1, round(self.controller.steps_ahead / preset.chunks.stride))
        self.plans: list[Plan] = []
        self.decisions: list[list[Decision]] = []
        self.planning_seconds = 0.0

    def reset(self, observations: Array, goals: Array) -> None:
        """Plan for all E episodes in one batch: observations [E, obs], goals [E, goal]. Raises UserError for others."""
        if np.ndim(observations) != 2 or np.ndim(goals) != 2 or len(observations) != len(goals):
            about = "episodes begin with observations [E, obs] and goals [E, goal], not of shapes"
            raise UserError(f"{about} {np.shape(observations)}, {np.shape(goals)}")
        episodes = len(observations)
        self._goals = self.space.planned(goals)
        self._step = 0
        self._replans, self._index, self._since, self._planned_at = np.zeros((4, episodes), int)
        self._given_up = np.zeros(episodes, bool)
        self._falls = Falls(self.body, episodes, self.patience, self.following.rise)
        self._tracks: list[Array] = [np.zeros((0, 0))] * episodes
        self._times: list[Array] = [np.zeros(0, int)] * episodes
        self._stops: list[list[Stop]] = [[] for _ in range(episodes)]
        self.plans = [None] * episodes  # type: ignore[list-item] # filled by the last line
        self.decisions = [[] for _ in range(episodes)]
        self.planning_seconds = 0.0
        self.controller.reset(observations)
        self.renew(observations, "start")

    def act(self, observations: Array, active: Array) -> Array:
        """Actions [E, act] that follow the plans; lost agents among the `active` [E] get new plans first."""
        if np.shape(observations)[:1] != (len(self.plans),) or np.shape(active) != (len(self.plans),):
            about = "began with reset; observations and active are of all of them, not of shapes"
            raise UserError(
                f"{counted(len(self.plans), 'episode')} {about} {np.shape(observations)}, {np.shape(active)}"
            )
        self._track(observations)
        active = np.asarray(active, bool)
        self._watch_falls(observations, active)
        off = self._off(observations)
        self._since[self._arrived(observations)] = 0  # staying there is no lack of progress
        lost = (off.max(axis=1) > self.preset.execution.replan_distance) & active & ~self._falls.down
        stuck = (self._since > self.patience) & active & ~lost & ~self._falls.down
        troubled = np.flatnonzero((lost | stuck) & ~self._given_up)
        if len(troubled):
            which = off.argmax(axis=1)
            self._handle(troubled, observations, [self._loss(which[e]) if lost[e] else "stuck" for e in troubled])
        self._step += 1
        targets = self._freed(self.targets(), observations)
        return self._falls.up_again(self.controller(observations, targets[:, self.seen]))

    def renew(self, observations: Array, reason: str) -> None:
        """New plans for all episodes, from where their agents are: what they followed holds no longer.

        Raises UserError where one of them cannot be made.
        """
        episodes = np.arange(len(observations))
        self._follow(episodes, self._asked(observations, episodes, self.following.n_chunks), [reason] * len(episodes))

    def targets(self) -> Array:
        """The planned states [E, D] that agents head for now; past a plan's end, its goal."""
        return np.take_along_axis(self._paths, self._target_index()[:, None, None], axis=1)[:, 0]

    def _freed(self, targets: Array, observations: Array) -> Array:
        """The targets [E, D], of agents without progress moved to one side, to the other, and back, in turns."""
        agent = list(self.space.positions[0].columns)
        if len(agent) != 2:  # there is no one side
            return targets
        turns = np.where(self._alone(), self._since // self.stall, 0)
        here = self.space.agent(self.space.planned(observations))
        moved = targets.copy()
        moved[:, agent] = freed(targets[:, agent], here, turns, 2 * self.look_ahead, self._behind)
        return moved

    def _behind(self, e: int) -> Array:
        """Where an agent was on its plan shortly before, x and y."""
        index = look_back(self._ways[e], self._index[e], self.retreat, self.space.furthest)
        return self.space.agent(self._paths[e, index])

    def _alone(self) -> Array:
        """[E] bool: over the next metres of its plan, the agent is all that moves, and leaves nothing behind."""
        here, there = (
            np.take_along_axis(self._ways, index[:, None, None], axis=1)[:, 0]
            for index in (self._index, self._ahead_by(self.look_ahead))
        )
        return np.asarray((self.space.distances(there - here)[:, 1:] <= self.spacing).all(axis=1))

    def executed(self, episode: int) -> int:
        """h_exe: how many states of its current plan the agent has behind it."""
        return int(self._times[episode][self._index[episode]])

    def left(self, episode: int) -> tuple[Waypoint, ...]:
        """The waypoints of its current plan that the agent has still to pass."""
        via = self.plans[episode].via
        return via[len(via) - len(self._stops[episode]) :]

    def _places(self, observations: Array) -> Array:
        """Where everything is that a plan moves, [E, obs] -> [E, P]."""
        return self.space.places(self.space.planned(observations))

    def _target_index(self) -> Array:
        if self.following.by != "progress":
            return np.minimum(self._index + self.ahead, self._last)
        # An agent held by a corner that the plan cuts looks further ahead, and so slides round it.
        return self._ahead_by(self.look_ahead * (1 + np.minimum(self._since / self.stall, 3)))

    def _ahead_by(self, distance: float | Array) -> Array:
        """The index [E] of the planned state that many metres ahead, one number for all or [E]."""
        return look_ahead(
            self._ways, self._index, self._leg_end(), distance, self.following.window, self.space.furthest
        )

    def _leg_end(self) -> Array:
        """The last state [E] that agents may head for by now: that of their next waypoint, or of their plan."""
        return np.array(
            [stops[0].index if stops else last for stops, last in zip(self._stops, self._last, strict=True)]
        )

    def _track(self, observations: Array) -> None:
        """Move each agent's index forward, never backward."""
        if self.following.by == "time":
            # The plan's clock runs whatever the agent does; a new plan's clock starts at its own first step.
            self._index = np.minimum((self._step - self._planned_at) // self.preset.chunks.stride, self._last)
            self._since[:] = 0
            return
        held = self._since >= self.stall
        for stops, state, tried in zip(self._stops, self.space.planned(observations), held, strict=True):
            if stops and stops[0].reached(state, tried):
                stops.pop(0)
        if self.following.by == "phase":
            here = self.space.planned(observations) / self._scales
            index = nearest_ahead(self._phases, self._index, self._leg_end(), here, PHASE)
        else:
            here = self._places(observations)
            index = nearest_ahead(self._ways, self._index, self._leg_end(), here, self.following.window)
        self._since = np.where(index > self._index, 0, self._since + 1)
        self._index = index

    def _off(self, observations: Array) -> Array:
        """Metres [E, groups] of each thing that moves from its subgoal at time t, or, by progress, from the plan."""
        index = self._target_index() if self.following.by == "time" else self._index
        where = np.take_along_axis(self._ways, index[:, None, None], axis=1)[:, 0]
        return self.space.distances(where - self._places(observations))

    def _loss(self, group: int) -> str:
        """The reason for a new plan where a position group is too far from the old one."""
        return "lost" if group == 0 else f"{self.space.positions[group].name} lost"

    def _arrived(self, observations: Array) -> Array:
        """[E] bool: what the task asks for is at the goal."""
        planned = self.space.planned(observations)
        away = [planned[:, list(columns)] - self._goals[:, list(columns)] for _, columns in self.asked]
        radius = self.preset.domain.goal_radius
        return np.max([np.linalg.norm(each, axis=1) for each in away], axis=0) <= (
            self.look_ahead / 2 if radius is None else radius
        )

    def _watch_falls(self, observations: Array, active: Array) -> None:
        """Note each fall once. A new plan does not help an agent on its back; it is followed again once it is up."""
        was = self._falls.down
        for e in self._falls.watch(observations, active):
            self._note(e, "fallen", planned=False)
        if self.body.gets_up or self._falls.rises:  # it is not stalled meanwhile
            self._since[self._falls.down] = 0
        self._since[was & ~self._falls.down] = 0

    def _handle(self, troubled: Array, observations: Array, reasons: list[str]) -> None:
        """Replan the troubled episodes that still may; those that get no plan are noted once."""
        may = self._replans[troubled] < (self.preset.execution.max_replans if self.following.replan else 0)
        again = troubled[may]
        plans: dict[int, Plan | None] = dict.fromkeys(troubled)
        if len(again):
            self._replans[again] += 1
            chunks: Chunks = "auto" if self.following.n_chunks == "auto" else [self._receding(e) for e in again]
            plans.update(zip(again, possible(partial(self._asked, observations), again, chunks), strict=True))
        self._follow(troubled, list(plans.values()), reasons)

    def _receding(self, e: int) -> int:
        plan = self.plans[e]
        return receding_chunks(plan.n_chunks, self.executed(e), len(plan.states), self.preset.execution.replan_delta)

    def _asked(self, observations: Array, episodes: Array, n_chunks: Chunks) -> list[Plan]:
        began = time.perf_counter()
        plans = self.planner.plan_batch(
            self.space.planned(observations)[episodes],
            self._goals[episodes],
            n_chunks=n_chunks,
            seed=seeds(self.following.seed, episodes, self.decisions),
            **self.following.options,
        )
        self.planning_seconds += time.perf_counter() - began
        return plans

    def _follow(self, episodes: Array, plans: Sequence[Plan | None], reasons: list[str]) -> None:
        """Follow new plans from here on; an agent without one is given up, and follows its old one."""
        for e, plan, reason in zip(episodes, plans, reasons, strict=True):
            if plan is None:
                self._given_up[e] = True
                self._note(e, reason, planned=False)
            else:
                self._take(e, plan, reason)
        self._paths = pad_paths(self._tracks)
        self._ways = self.space.places(self._paths)
        if self.following.by == "phase":
            self._scales = np.stack([scale_of(track, self.space.columns) for track in self._tracks])
            self._phases = self._paths / self._scales[:, None]
        self._last = np.array([len(track) - 1 for track in self._tracks])

    def _take(self, e: int, plan: Plan, reason: str) -> None:
        self.plans[e] = plan
        self._tracks[e], self._times[e] = self._track_of(plan, self._goals[e])
        self._stops[e] = stops_of(plan, self.look_ahead, self._times[e])
        if self._stops[e] and self.following.by == "progress":
            led = through(self._tracks[e], self._times[e], self._stops[e], self.look_ahead)
            self._tracks[e], self._times[e], self._stops[e] = led
        self._index[e] = self._since[e] = 0
        self._planned_at[e] = self._step
        self._note(e, reason, planned=True)

    def _track_of(self, plan: Plan, goal: Array) -> tuple[Array, Array]:
        """The states to follow [n, D], with the goal last, and their times in the plan [n].

        Of the goal, only what the task asks for counts: the ant may end anywhere beside its ball.
        """
        times = np.arange(len(plan.states))
        if self.following.by == "progress":
            passed = [stop.index for stop in stops_of(plan, self.look_ahead)]
            times = without_loops_between(self.space.places(plan.states), passed, self.spacing, self.space.furthest)
        last = goal.copy()
        for group in self.space.positions:
            if group not in self.asked:
                last[list(group.columns)] = plan.states[-1, list(group.columns)]
        states = np.concatenate([plan.states[times], last[None]])
        return states, np.append(times, len(plan.states) - 1)

    def _note(self, e: Any, reason: str, planned: bool) -> None:
        self.decisions[e].append(Decision.of(self._step, reason, planned, self.plans[e]))
