"""What an expert is trained on and with: one frozen record per expert. The defaults are the ant's.

An expert is a body, a task (what it is told and what that is worth), a view (what it sees) and a way of learning:
soft actor-critic, or imitation of another expert.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from compdiffuser.checks import brief, typed, widths
from compdiffuser.types import UserError


@dataclass(frozen=True)
class ExpertConfig:
    """How one expert is trained."""

    name: str
    """Name of the expert, and of its folder under pretrained/experts."""
    body: str = "ant"
    """One of `domains.body.BODIES`."""
    task: Literal["direction", "standing", "ball"] = "direction"
    """One of `experts.tasks.TASKS`."""
    view: Literal["world", "egocentric"] = "world"
    """Observation and command as they are, or both in the frame of the body's heading: all directions are one."""
    learner: Literal["actor-critic", "imitation"] = "actor-critic"
    teacher: str = ""
    """What an imitation imitates: the name and digest of an expert."""

    steps: int = 400_000
    """Environment steps."""
    episode_steps: int = 1000
    """Steps after which an episode is cut; it counts as unfinished."""
    redraw: int = 100
    """Steps after which a new command is given."""
    redraw_chance: float = 0.0
    """Chance of a new command at every other step."""
    standing_starts: float = 0.5
    """Share of episodes that start on the feet; the others start in a random pose. Ants always stand."""
    fall_cost: float = 10.0
    """Reward lost by a fall that ends the episode. A fast ant hurries too much without."""
    top_speed: float | None = None
    """Metres per step along the direction beyond which more is worth no more; without it, haste makes ants fall."""

    actor_hidden: tuple[int, ...] = (256, 256)
    critic_hidden: tuple[int, ...] = (256, 256)
    activation: Literal["relu", "silu"] = "relu"
    layer_norm: bool = False
    """Layer norm in all networks."""
    normalized_steps: int = 0
    """Steps over which mean and variance of the inputs are gathered; 0: inputs as they are."""

    learning_rate: float = 3e-4
    final_rate: float = 1.0
    """Share of the learning rate that is left at the end; it falls as a cosine."""
    second_moment: float = 0.999
    """Adam's β₂; large batches want less."""
    weight_decay: float = 0.0
    batch: int = 256
    updates_per_step: float = 1.0
    random_steps: int = 5_000
    """Steps before learning begins. Soft actor-critic acts at random until then."""
    critic: Literal["min", "mean"] = "min"
    """How two critics make one value."""
    huber: float = 100.0
    """Error beyond which the critics' loss grows linearly instead of quadratically."""
    discount: float = 0.99
    target_rate: float = 0.005
    entropy: float = 0.5
    """The policy's entropy is held at −entropy per action dimension."""
    first_temperature: float = 0.1
    """What a unit of entropy is worth at first; it tunes itself."""
    values_entropy: bool = False
    """Whether critics count future entropy as reward."""
    relabel: float = 0.5
    """Share of each batch whose command is drawn anew: rewards are known for any command."""

    environments: int = 16
    """Bodies simulated side by side, spread over processes."""
    replay: int = 400_000
    """Transitions kept."""
    log_every: int = 10_000
    """Environment steps between lines of the log."""
    checkpoint_every: int = 10_000
    """Environment steps between checkpoints."""
    measure_every: int = 10_000
    """Environment steps between measurements by `experts.evaluation`; there is always one at the end."""
    time_limit: float | None = None
    """Seconds of training, those before a resume included, after which a run ends before its steps."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise UserError(f"{name} is one of {', '.join(known)}, not '{brief(getattr(self, name))}'")
        typed(self)
        widths(self, "actor_hidden", "critic_hidden")
        self._check_numbers()
        if not (self.updates_per_round >= 1 and float(self.updates_per_round).is_integer()):
            raise UserError(
                f"{self.environments} environments with {self.updates_per_step} updates per step make "
                f"{self.updates_per_round} updates at a time; choose numbers that make whole ones"
            )
        if self.body != BODY_FOR[self.task]:
            raise UserError(f"task '{self.task}' is for the body '{BODY_FOR[self.task]}', not for '{brief(self.body)}'")
        if self.task == "ball" and self.top_speed is not None:
            raise UserError("a top speed belongs to the tasks 'direction' and 'standing', not to 'ball'")
        if self.replay < self.environments:
            raise UserError(f"a replay of {self.replay} transitions is too small for {self.environments} environments")

    def _check_numbers(self) -> None:
        for name in AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{name} is a share between 0 and 1, not {getattr(self, name)}")
        for name in POSITIVE:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UserError(f"{name} must be more than 0, not {value}")
        for name in NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise UserError(f"{name} must not be negative, and is {getattr(self, name)}")

    @property
    def updates_per_round(self) -> float:
        """Updates for one step of all environments; on a GPU they are one CUDA graph."""
        return self.environments * self.updates_per_step

    def to_dict(self) -> dict[str, Any]:
        values = asdict(self)
        return values | {name: list(values[name]) for name in ("actor_hidden", "critic_hidden")}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ExpertConfig:
        """The settings that `to_dict` wrote."""
        return cls(**values | {name: tuple(values[name]) for name in ("actor_hidden", "critic_hidden")})


CHOICES = {
    "task": ("direction", "standing", "ball"),
    "view": ("world", "egocentric"),
    "learner": ("actor-critic", "imitation"),
    "activation": ("relu", "silu"),
    "critic": ("min", "mean"),
}
BODY_FOR = {"direction": "ant", "standing": "humanoid", "ball": "ant-ball"}
AT_LEAST_ONE = (
    "steps", "environments", "batch", "redraw", "episode_steps", "log_every", "checkpoint_every", "measure_every",
)  # fmt: skip
SHARES = ("relabel", "redraw_chance", "standing_starts", "final_rate", "discount", "target_rate", "second_moment")
POSITIVE = ("learning_rate", "huber", "updates_per_step", "first_temperature", "top_speed", "time_limit")
NOT_NEGATIVE = ("fall_cost", "random_steps", "normalized_steps", "weight_decay", "seed")

LARGE: dict[str, Any] = {
    "view": "egocentric", "actor_hidden": (512,) * 3, "critic_hidden": (512,) * 3, "activation": "silu",
    "layer_norm": True, "normalized_steps": 10**12, "second_moment": 0.98, "critic": "mean", "huber": 2.0,
    "first_temperature": 0.05, "values_entropy": True, "batch": 2048, "environments": 512,
    "updates_per_step": 8 / 512, "random_steps": 20_480, "replay": 8_000_000, "redraw_chance": 0.005,
    "log_every": 400_000, "checkpoint_every": 1_000_000, "measure_every": 10**12,
}  # fmt: skip
"""Large networks and batches for a GPU beside many simulators."""
HUMANOID: dict[str, Any] = LARGE | {
    "body": "humanoid", "task": "standing", "top_speed": 0.06, "episode_steps": 400, "redraw": 200, "fall_cost": 0.0,
}  # fmt: skip

EXPERTS: dict[str, ExpertConfig] = {
    config.name: config
    for config in (
        ExpertConfig("ant", top_speed=0.12),
        ExpertConfig("humanoid", **HUMANOID | {"steps": 12_000_000}),
        ExpertConfig(
            "ball", **LARGE | {"body": "ant-ball", "task": "ball", "steps": 12_000_000, "episode_steps": 200,
            "redraw": 200, "fall_cost": 5.0},
        ),
        ExpertConfig(
            "humanoid-student", **HUMANOID | {"view": "world", "learner": "imitation", "steps": 4_000_000,
            "learning_rate": 1e-3, "final_rate": 0.03, "weight_decay": 1e-4, "batch": 8192,
            "updates_per_step": 10 / 512, "random_steps": 100_000, "normalized_steps": 1_000_000, "replay": 6_000_000},
        ),
    )
}  # fmt: skip


def expert_config(name: str) -> ExpertConfig:
    """The settings of an expert. Raises UserError for an unknown one."""
    if name not in EXPERTS:
        raise UserError(f"unknown expert '{brief(name)}'; known experts: {', '.join(EXPERTS)}")
    return EXPERTS[name]
