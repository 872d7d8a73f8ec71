"""OGBench's agents and our baselines, update for update: the same weights and batches, in double precision.

    python benchmarks/against_agents.py --ogbench ../ogbench --hardware "two CPU cores"

The checkout is of seohongpark/ogbench, whose agents need JAX, Flax, Optax, Distrax and ml_collections. Of each method,
this compares the settings of all datasets that both know, losses and their gradients, what updates change, and how far
ahead goals lie. Where weights are compared, OGBench's layer norms keep their first scale and shift and our targets move
before an update, as OGBench's do. Losses are also compared without that, after more updates.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from figures import Figures
from strangers import OGBench
from torch import Tensor
from translating import NETWORKS, batch_of, commands, settings_of, weights_of

from compdiffuser.baselines import METHODS, Sizes
from compdiffuser.baselines.agent import Agent
from compdiffuser.baselines.goals import Experience, Trajectories
from compdiffuser.baselines.presets import config_for
from compdiffuser.baselines.training import train_config
from compdiffuser.presets import PRESETS, preset
from compdiffuser.training.updater import Learner, Updater
from compdiffuser.types import Array, Episodes

GROUP = "one update"
DATASET = "pointmaze-medium-stitch-v0"
"""Its settings are compared in full."""
LENGTH = 201
"""States of an episode."""
APART = "relative difference"


@dataclass(frozen=True)
class Benchmark:
    ogbench: Path
    """Checkout of OGBench."""
    out: Path = Path("results/against_agents.json")
    hardware: str = "this machine"
    methods: tuple[str, ...] = tuple(NETWORKS)
    updates: int = 10
    """Updates after which weights are compared."""
    later: int = 200
    """Updates after which losses are compared, with all that differs."""
    batch: int = 256
    hidden: tuple[int, ...] = (64, 64, 64)
    latent: int = 64
    """Width of latents, of methods that have them."""
    episodes: int = 200
    drawn: int = 500_000
    """Transitions by which goals are compared."""


def main(options: Benchmark) -> None:
    import jax  # no other benchmark needs it

    jax.config.update("jax_enable_x64", True)
    torch.set_num_threads(1)
    figures = Figures(options.out, "python benchmarks/against_agents.py", options.hardware, GROUP, add=True)
    for method in options.methods:
        pair = Pair(method, options)

        def note(column: str, value: float, unit: str = APART, row: str = method) -> None:
            figures.note(f"{row}, {column}", value, unit, row=row, column=column)

        note("other settings", len(other_settings(method, options.ogbench, pair.theirs.config)), "settings")
        loss, gradients = pair.one_update()
        note("loss", loss)
        note("gradients", gradients)
        note(f"change in {options.updates} updates", pair.changes(options.updates))
        note(f"loss after {options.later:,} updates as trained", pair.loss_later(options.later))
        note("goals", pair.goals(options.drawn), "largest difference of cumulative shares")


def other_settings(method: str, folder: Path, defaults: Mapping[str, Any]) -> list[str]:
    """What OGBench sets otherwise than we do, in its commands for datasets that we know."""
    unused = ("discount", "value_") if method == "gcbc" else ()
    found = []
    for dataset, name, given in commands(folder):
        if name != method or dataset not in PRESETS:
            continue
        ours = settings_of(config_for(method, preset(dataset)))
        theirs = {**defaults, **{key: ast.literal_eval(text) for key, text in given.items()}}
        for key in (key for key in ours if key in theirs and not key.startswith(unused)):
            if (tuple(theirs[key]) if key.endswith("dims") else theirs[key]) != ours[key]:
                found.append(f"{dataset}: {key} is {theirs[key]} there and {ours[key]} here")
    for sentence in found:
        print(sentence, flush=True)
    return found


class Fed(Learner):
    """An agent that learns from batches that it is given."""

    module: Agent
    batch: Any

    def __init__(self, agent: Agent, targets_first: bool) -> None:
        """`targets_first`: targets follow the weights from before the update."""
        self.module, self.parts, self.targets_first = agent, agent.parts, targets_first

    def loss(self, module: Any, generator: torch.Generator) -> Tensor:
        loss: Tensor = module.loss(self.batch)
        if self.targets_first:
            module.after_update()
        return loss

    def after_update(self) -> None:
        if not self.targets_first:
            self.module.after_update()


class Pair:
    """OGBench's agent of a method and ours, with the same settings and data."""

    def __init__(self, method: str, options: Benchmark) -> None:
        self.method = method
        small: dict[str, Any] = {"batch": options.batch, "hidden": options.hidden, "latent": options.latent}
        known = METHODS[method].config.__dataclass_fields__
        changes = {name: value for name, value in small.items() if name in known}
        self.config = config_for(method, preset(DATASET), changes)
        data = numbered_walks(options.episodes)
        np.random.seed(0)  # noqa: NPY002, OGBench draws from it
        self.theirs = Theirs(options.ogbench, method, data, settings_of(self.config))
        sizes = Sizes(data.observations.shape[1], data.actions.shape[1], data.observations.shape[1])
        self.ours: Agent = METHODS[method].agent(self.config, sizes, (0,)).double()
        self.experience, self.states = Experience(Trajectories.from_episodes(data)), len(data.observations)
        self.kind = type(self.ours.draw(self.experience, torch.Generator()))

    def restart(self) -> None:
        """Give both agents OGBench's first weights."""
        self.theirs.restart()
        self.ours.load_state_dict(self.weights())

    def weights(self) -> dict[str, Tensor]:
        """OGBench's weights, by our names."""
        return weights_of(self.theirs.params, self.method)

    def one_update(self) -> tuple[float, float]:
        """How far apart the losses of a batch are, and their gradients."""
        self.restart()
        drawn = self.theirs.draw()
        total, gradients = self.theirs.loss(drawn)
        own = self.ours.loss(batch_of(drawn, self.kind)).sum()
        own.backward()
        found = {name: weight.grad for name, weight in self.ours.named_parameters() if weight.grad is not None}
        self.ours.zero_grad()
        return abs(own.item() / total - 1), furthest(found, weights_of(gradients, self.method))

    def changes(self, updates: int) -> float:
        """How far apart the changes of weights are, targets included."""
        self.restart()
        before = self.weights()
        self.learn(updates, alike=True)
        ours, theirs = self.ours.state_dict(), self.weights()
        return furthest(
            {name: ours[name] - old for name, old in before.items()},
            {name: theirs[name] - old for name, old in before.items()},
        )

    def loss_later(self, updates: int) -> float:
        """How far apart the losses of a batch are after updates with all that differs."""
        self.restart()
        self.learn(updates, alike=False)
        drawn = self.theirs.draw()
        with torch.no_grad():
            own = self.ours.loss(batch_of(drawn, self.kind)).sum().item()
        return abs(own / self.theirs.loss(drawn)[0] - 1)

    def learn(self, updates: int, alike: bool) -> None:
        """Updates of both agents with the same batches."""
        learner = Fed(self.ours, targets_first=alike)
        updater = Updater(learner, train_config(self.config, updates, updates_per_replay=1), torch.device("cpu"))
        for step in range(updates):
            drawn = self.theirs.draw()
            self.theirs.update_with(drawn, plain_norms=alike)
            learner.batch = batch_of(drawn, self.kind)
            updater.update(step, progress=0.0)

    def goals(self, count: int) -> float:
        """Largest difference, over kinds of goals, between the cumulative shares of steps that they lie ahead."""
        theirs = batch_of(self.theirs.data.sample(count), self.kind)
        self.ours.config = replace(self.config, batch=count)
        ours = self.ours.draw(self.experience, torch.Generator().manual_seed(0))
        self.ours.config = self.config
        kinds = [name for name in self.kind._fields if name.endswith(("goals", "waypoints"))]
        return max(float((self._shares(theirs, kind) - self._shares(ours, kind)).abs().max()) for kind in kinds)

    def _shares(self, batch: Any, kind: str) -> Tensor:
        """Shares of goals that lie at most so many steps ahead; those of other episodes come before all."""
        rows, goals = (
            (field[0, :, 0] * self.states).round().long() for field in (batch.observations, getattr(batch, kind))
        )
        ahead = torch.where((goals // LENGTH == rows // LENGTH) & (goals >= rows), goals - rows, -1)
        return torch.bincount(ahead + 1, minlength=LENGTH + 1).cumsum(0) / len(ahead)


class Theirs(OGBench):
    """OGBench's agent in double precision, one update at a time."""

    def __init__(self, folder: Path, method: str, data: Episodes, settings: Mapping[str, Any]) -> None:
        import jax

        super().__init__(folder, method, data, settings)
        network = self.agent.network
        params = jax.tree.map(lambda array: array.astype(np.float64), network.params)
        network = network.replace(params=params, opt_state=network.tx.init(params))
        self.begin = self.agent = self.agent.replace(network=network)

    @property
    def params(self) -> Mapping[str, Any]:
        return self.agent.network.params

    def restart(self) -> None:
        self.agent = self.begin

    def draw(self) -> dict[str, Array]:
        drawn = self.data.sample(self.batch)
        return {name: np.asarray(drawn[name], np.float64) for name in drawn}

    def loss(self, drawn: Mapping[str, Array]) -> tuple[float, Mapping[str, Any]]:
        """The loss of a batch, and its gradients."""
        import jax

        (total, _), gradients = jax.value_and_grad(
            lambda params: self.agent.total_loss(drawn, params, rng=self.agent.rng), has_aux=True
        )(self.params)
        return float(total), gradients

    def update_with(self, drawn: Mapping[str, Array], plain_norms: bool) -> None:
        """An update; with `plain_norms`, layer norms keep the scale and shift that they had."""
        import jax

        before = self.params
        self.agent, _ = self.agent.update(drawn)
        if plain_norms:
            params = jax.tree_util.tree_map_with_path(
                lambda path, new, old: old if "LayerNorm" in jax.tree_util.keystr(path) else new, self.params, before
            )
            self.agent = self.agent.replace(network=self.agent.network.replace(params=params))


def furthest(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> float:
    """Relative difference of those of equal names that are furthest apart."""
    return max(float((value - expected[name]).norm() / expected[name].norm()) for name, value in found.items())


def numbered_walks(count: int) -> Episodes:
    """Random walks of a point in 3D, whose first number is the number of their state, from 0 to 1."""
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (count, LENGTH, 3))
    places = rng.uniform(-5, 5, (count, 1, 3)) + 0.2 * (np.cumsum(actions, 1) - actions)
    rows = np.arange(count * LENGTH)
    states = np.column_stack([rows / len(rows), places.reshape(-1, 3)])
    flat = (array.astype(np.float32) for array in (states, actions.reshape(-1, 3)))
    return Episodes.from_terminals(*flat, rows % LENGTH == LENGTH - 1)


if __name__ == "__main__":
    main(tyro.cli(Benchmark))
