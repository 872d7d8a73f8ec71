"""What learners share: rounds of updates as one CUDA graph, the optimizer, running means, and checkpoints.

All updates that belong to one step of the bodies are one round: a CUDA graph on a GPU, a plain loop on a CPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from compdiffuser.experts.config import ExpertConfig
from compdiffuser.experts.layout import Layout
from compdiffuser.experts.networks import Actor
from compdiffuser.experts.replay import Replay
from compdiffuser.experts.simulators import Simulators
from compdiffuser.experts.tasks import task_of
from compdiffuser.types import Array

WARM_ROUNDS = 3  # eager ones before capture: they allocate what the graph will reuse


class Learner:
    """An actor that is trained on the rows of a replay, in rounds."""

    measured: ClassVar[tuple[str, ...]]
    """Names of the running means."""

    def __init__(self, config: ExpertConfig, bodies: Simulators, device: torch.device) -> None:
        self.config, self.device, self.task = config, device, task_of(config)
        self.sizes = bodies.transitions.widths
        torch.manual_seed(config.seed)
        self.actor = Actor(config, self.sizes["view"], self.task.shown, self.sizes["action"]).to(device)
        self.generator = torch.Generator(device).manual_seed(config.seed)
        self.rate = torch.tensor(config.learning_rate, device=device)
        self.means = torch.zeros(len(self.measured), device=device)
        self.updates = self.counted = self.warm = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.stream = torch.cuda.Stream() if device.type == "cuda" else None
        self.replay: Replay

    # What a learner does its own way.

    def layout(self, bodies: Simulators) -> Layout:
        """Of the rows that it keeps."""
        return bodies.transitions

    def act(self, bodies: Simulators, steps: int, done: float) -> Array:
        """Actions [E, act] after `steps` of environments and a share `done` of the training."""
        raise NotImplementedError

    def kept(self, bodies: Simulators) -> Array:
        """Rows [E, width] to keep of the step that the bodies took."""
        return bodies.rows

    def modules(self) -> dict[str, nn.Module]:
        """All networks, by their names in a checkpoint."""
        return {"actor": self.actor}

    def _update(self) -> None:
        raise NotImplementedError

    # What all share.

    def update(self, done: float = 0.0) -> None:
        """The updates that belong to one step of all bodies, at a share `done` of the training."""
        left = self.config.final_rate + (1 - self.config.final_rate) * 0.5 * (1 + math.cos(math.pi * min(done, 1)))
        self.rate.fill_(self.config.learning_rate * left)
        if self.stream is not None and self.graph is None:
            self._prepare()
        elif self.graph is not None:
            self.graph.replay()
        else:
            self._round()
        self.updates += int(self.config.updates_per_round)
        self.counted += int(self.config.updates_per_round)

    def take_means(self) -> dict[str, float]:
        """Means since the last call; reading them waits for the GPU."""
        means = (self.means / max(self.counted, 1)).tolist()
        self.means.zero_()
        self.counted = 0
        return dict(zip(self.measured, means, strict=True))

    def weights(self) -> dict[str, Array]:
        """The actor's, as arrays."""
        return {name: weight.detach().cpu().numpy() for name, weight in self.actor.state_dict().items()}

    def state(self) -> dict[str, Any]:
        networks = {name: module.state_dict() for name, module in self.modules().items()}
        rest = {"optimizer": self.optimizer.state_dict(), "generator": self.generator.get_state()}
        counts = {"updates": self.updates, "counted": self.counted, "means": self.means.tolist()}
        return {"networks": networks, **rest, **counts}

    def restore(self, state: dict[str, Any]) -> None:
        for name, module in self.modules().items():
            module.load_state_dict(state["networks"][name])
        # A run may change from a CPU to a GPU: Adam's counts go where this flag wants them, and noise starts anew.
        saved, on_gpu = state["optimizer"], self.device.type == "cuda"
        groups = [group | {"capturable": on_gpu, "lr": self.rate} for group in saved["param_groups"]]
        self.optimizer.load_state_dict(saved | {"param_groups": groups})
        for group in self.optimizer.param_groups:  # loading copies; the rate is changed through this tensor
            group["lr"] = self.rate
        if len(state["generator"]) == len(self.generator.get_state()):
            self.generator.set_state(state["generator"])
        self.updates, self.counted = int(state["updates"]), int(state.get("counted", 0))
        if "means" in state:
            self.means.copy_(torch.tensor(state["means"]))

    def optimize(self, parameters: Iterable[nn.Parameter]) -> None:
        """Make the optimizer of these parameters."""
        config, on_gpu = self.config, self.device.type == "cuda"
        self.optimizer = torch.optim.AdamW(
            list(parameters), lr=self.rate, betas=(0.9, config.second_moment), weight_decay=config.weight_decay,
            fused=True, capturable=on_gpu,
        )  # fmt: skip

    def step(self, *gradients: tuple[Sequence[nn.Parameter], Sequence[Tensor]]) -> None:
        """One step of the optimizer; each loss moved its own weights only."""
        for weights, moves in gradients:
            for weight, move in zip(weights, moves, strict=True):
                weight.grad = move
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def half(self) -> AbstractContextManager[Any]:
        """Products in bfloat16 on a GPU."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")

    def _prepare(self) -> None:
        """A round of updates on the stream of the capture; after a few of them, the capture."""
        assert self.stream is not None
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self._round()
        torch.cuda.current_stream().wait_stream(self.stream)
        self.warm += 1
        if self.warm == WARM_ROUNDS:
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self.generator)
            with torch.cuda.graph(graph, stream=self.stream):
                self._round()
            self.graph = graph

    def _round(self) -> None:
        for _ in range(int(self.config.updates_per_round)):
            self._update()
