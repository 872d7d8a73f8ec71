"""What an expert is trained on and with: one frozen record per body, OGBench's recipes with a few figures of our own.

The trainer knows nothing of ants: a body is an environment id, a kind of reward, and sizes of networks.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from compdiffuser.types import UserError

Reward = Literal["direction", "standing", "own"]


@dataclass(frozen=True)
class ExpertConfig:
    """Soft actor-critic on one body."""

    name: str
    """Name of the expert, and of its folder under pretrained/experts."""
    environment: str
    """Gymnasium id of the simulator."""
    reward: Reward = "direction"
    """Displacement · direction; the same times 100, plus 1, while standing; or the environment's own."""
    steps: int = 400_000
    """Environment steps."""
    episode_steps: int = 1000
    """Steps after which an episode is cut; it counts as unfinished."""
    ends_fallen: bool = True
    """Whether an episode is over once the body lies on its back; no more reward is to be had from there."""
    fall_cost: float = 10.0
    """Reward lost by such a fall. A fast ant is worth about 15 from where it is on, and hurries too much without."""
    top_speed: float | None = None
    """Metres per step along the direction beyond which more is worth no more; without it, haste makes ants fall."""
    redraw: int = 100
    """Steps after which a new direction is commanded."""
    actor_hidden: tuple[int, ...] = (256, 256)
    critic_hidden: tuple[int, ...] = (256, 256)
    layer_norm: bool = False
    """Layer norm in the critics."""
    critic: Literal["min", "mean"] = "min"
    """How two critics make one value."""
    learning_rate: float = 3e-4
    batch: int = 256
    discount: float = 0.99
    target_rate: float = 0.005
    entropy: float = 0.5
    """The policy's entropy is held at −entropy per action dimension."""
    reward_scale: float = 1.0
    updates_per_step: float = 1.0
    relabel: float = 0.5
    """Share of each batch whose direction is drawn anew: rewards are linear in it, so that they are known."""
    random_steps: int = 5_000
    """Steps of random actions before learning begins."""
    environments: int = 16
    """Bodies simulated side by side, on threads."""
    replay: int = 400_000
    """Transitions kept."""
    log_every: int = 10_000
    """Environment steps between measurements."""
    checkpoint_every: int = 10_000
    """Environment steps between checkpoints."""
    seed: int = 0
    render_mode: str | None = None
    """What the simulator is made with."""

    def __post_init__(self) -> None:
        for name in ("steps", "environments", "batch", "redraw", "episode_steps", "log_every", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not (self.updates_per_round >= 1 and float(self.updates_per_round).is_integer()):
            raise UserError(
                f"{self.environments} environments with {self.updates_per_step} updates per step make "
                f"{self.updates_per_round} updates at a time; choose numbers that make whole ones"
            )
        if not 0 <= self.relabel <= 1:
            raise UserError(f"relabel is a share between 0 and 1, not {self.relabel}")
        if self.top_speed is not None and self.reward != "direction":
            raise UserError(f"a top speed belongs to reward 'direction', not to '{self.reward}'")
        if self.replay < self.environments:
            raise UserError(f"a replay of {self.replay} transitions is too small for {self.environments} environments")

    @property
    def updates_per_round(self) -> float:
        """Updates for one step of all environments; on a GPU they are one CUDA graph."""
        return self.environments * self.updates_per_step

    @property
    def directed(self) -> bool:
        """Whether a direction is commanded at all."""
        return self.reward != "own"

    def to_dict(self) -> dict[str, Any]:
        values = asdict(self)
        return values | {name: list(values[name]) for name in ("actor_hidden", "critic_hidden")}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ExpertConfig:
        hidden = {name: tuple(values[name]) for name in ("actor_hidden", "critic_hidden")}
        return cls(**(values | hidden))


EXPERTS: dict[str, ExpertConfig] = {
    config.name: config
    for config in (
        ExpertConfig("ant", "online-ant-v0", top_speed=0.12),
        ExpertConfig(
            "ball", "online-antball-v0", reward="own", steps=12_000_000, episode_steps=200, layer_norm=True,
            updates_per_step=0.25, replay=1_000_000, relabel=0.0, ends_fallen=False,
            log_every=100_000, checkpoint_every=100_000, render_mode="rgb_array",
        ),
        ExpertConfig(
            "humanoid", "online-humanoid-v0", reward="standing", steps=40_000_000, redraw=200, layer_norm=True,
            ends_fallen=False, critic_hidden=(1024, 1024, 1024), critic="mean", updates_per_step=0.25, replay=1_000_000,
            log_every=100_000, checkpoint_every=100_000,
        ),
    )
}  # fmt: skip


def expert_config(name: str) -> ExpertConfig:
    """The record of an expert, or a sentence with the known names."""
    if name not in EXPERTS:
        raise UserError(f"unknown expert '{name}'; known experts: {', '.join(EXPERTS)}")
    return EXPERTS[name]
