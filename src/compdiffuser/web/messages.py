"""What goes over the wire: requests that check themselves, and replies. The OpenAPI document is made of these."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from compdiffuser.planning.search import Origin
from compdiffuser.planning.steering.regions import region
from compdiffuser.planning.steering.steering import Steering, waypoint
from compdiffuser.types import UserError
from compdiffuser.web.message import Message
from compdiffuser.web.models import ModelReply

State = Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=1, max_length=64)]
NUMBER = r"-?[0-9]{1,9}(\.[0-9]{0,20})?([eE][-+]?[0-9]{1,3})?"
NUMBERS = rf"^\s*{NUMBER}(\s*,\s*{NUMBER}){{0,63}}\s*$"
Numbers = Annotated[str, Field(pattern=NUMBERS, max_length=2000, examples=["0,0"])]


class Options(Message):
    """How to plan; a request that leaves all this out is planned as on the command line."""

    chunks: Literal["auto"] | Annotated[int, Field(ge=1)] = "auto"
    """K, the number of chunks; `auto` tries several."""
    candidates: int = Field(default=64, ge=1)
    """Most fresh candidates to make; about as many refined ones may come on top."""
    order: str = Field(default="autoregressive", max_length=64)
    """In which order chunks are denoised; one that `/v1/models` lists."""
    rule: str = Field(default="euler", max_length=64)
    """How a step is taken; one that `/v1/models` lists."""
    score: str = Field(default="reconstruction", max_length=64)
    """By which the plan is chosen; `overlap`, the paper's, waits for all candidates."""
    blending: str = Field(default="exponential", max_length=64)
    """By which chunks are merged."""
    steps: int = Field(default=10, ge=1)
    """N, noise levels walked down."""
    repeats: int = Field(default=8, ge=1)
    """R, times each step in the resampling window is taken."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    """The same seed, with the same `wave`, gives the same plan."""
    wave: Annotated[int, Field(ge=1)] | None = None
    """Candidates made at a time until one is certified. Left out, the server decides by load. Where they would take
    long, fewer are made at a time; the reply tells how many."""
    include_candidates: bool = False
    """Whether the reply lists all candidates with their paths."""

    @field_validator("chunks", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        """A query holds text, also where it means a number."""
        return (
            int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 9 else value
        )


Text = Annotated[str, Field(max_length=2000)]


class Steered(Options):
    """What steers a plan, written as on the command line."""

    via: list[Text] = Field(default=[], max_length=16, examples=[["20,16"]])
    """Places to pass, in order: `x,y`, or `x,y@ball` where the ball has to."""
    avoid: list[Text] = Field(default=[], max_length=32, examples=[["disc:12,8,2", "box:24,0,28,8"]])
    """Regions to keep out of: `disc:x,y,r`, `box:x0,y0,x1,y1`, `polygon:x,y,x,y,…`; with `@ball`, for the ball."""
    margin: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Metres to keep away from the regions."""
    plans: int = Field(default=1, ge=1, le=8)
    """Plans to choose from, at most, that take different ways."""

    @property
    def steering(self) -> Steering:
        """Raises UserError for what is written otherwise."""
        return Steering.of(
            [waypoint(text) for text in self.via], [region(text) for text in self.avoid], margin=self.margin
        )


class PlanRequest(Steered):
    model: str = Field(max_length=200, examples=["pointmaze-giant-stitch-v0"])
    """A name that `/v1/models` lists."""
    start: State = Field(examples=[[0.0, 0.0]])
    """A planned state, or its `start_columns` in `/v1/models` alone: the simulator then says in which posture."""
    goal: State = Field(examples=[[52.0, 36.0]])
    """A planned state, or its `goal_columns` alone."""


class PlanQuery(Steered):
    """The same in an address; states are numbers separated by commas."""

    model: str = Field(max_length=200)
    start: Numbers
    goal: Numbers
    columns: Annotated[str, Field(pattern=r"^[0-9]{1,3}(,[0-9]{1,3}){0,63}$", examples=["0,1"])] | None = None
    """Columns of a planned state that frames and candidates hold; left out, those of all places."""

    def request(self) -> PlanRequest:
        plain = self.model_dump(exclude={"columns"})
        for name in ("start", "goal"):
            plain[name] = [float(part) for part in plain[name].split(",")]
            if not all(map(math.isfinite, plain[name])):
                raise UserError(f"the {name} {plain[name]} is not finite")
        return PlanRequest(**plain)


class Piece(Message):
    """A piece of a path."""

    test: str
    """The test that it failed."""
    path: list[list[float]]


class CandidateReply(Message):
    number: int
    n_chunks: int
    score: float | None
    """Reconstruction error of the worst chunk; lower is better."""
    certified: bool
    origin: Origin
    """What it began from: noise, a scaffold (a way through the recorded states) or another candidate with noise."""
    refined: bool
    """Whether that was another candidate."""
    measures: dict[str, float | None]
    """What each of the judge's tests measured, as a share of the most that passes."""
    path: list[list[float]]
    """The merged states, thinned: places, or the columns that were asked for."""
    failed: list[Piece]
    """Tests that it did not pass, each with the piece of the path that failed it."""


class Verdict(Message):
    """The judge's tests."""

    failed: list[str]
    """Names of those that the plan did not pass."""
    measures: dict[str, float | None]
    """What each measured, as a share of the most that passes."""
    where: dict[str, str] = Field(default_factory=dict)
    """For tests that were not passed, where on the plan, if that is known."""
    told: str
    """In words."""


class OtherReply(Message):
    """A plan that takes another way."""

    states: list[list[float]]
    """[T, D], the chunks merged."""
    n_chunks: int
    length: float
    score: float | None
    confidence: float
    verdict: Verdict


class PlanReply(Message):
    model: str
    start: list[float]
    goal: list[float]
    ok: bool
    """Whether the plan is certified."""
    verdict: Verdict
    why: str
    """Why it was chosen, in a sentence."""
    origin: Origin
    """What it began from."""
    complete: bool
    """False where time ran out before all candidates were made and none was certified by then."""
    states: list[list[float]]
    """[T, D], the chunks merged."""
    n_chunks: int
    horizon: int
    """H, states per chunk; chunk k begins at state k·(H − O)."""
    overlap: int
    """O, states shared by neighbouring chunks."""
    stride: int
    """Environment steps between states."""
    times: list[float] | None
    """Seconds from the start to each state, where the data was recorded with a clock."""
    length: float
    score: float | None
    overlap_distance: float | None
    confidence: float
    fault: str | None
    """Why no agent could follow the plan in its maze, where the maze is known."""
    tried: int
    """Candidates made, refined ones included."""
    wave: int
    """Candidates made at a time; ask for the same to get the same plan."""
    waited: float
    """Seconds in the queue."""
    seconds: float
    """Seconds from there to the plan."""
    options: Options
    reproduce: dict[str, str]
    """`python` and `shell` lines that make this plan."""
    candidates: list[CandidateReply] | None = None
    """All candidates, best first, where they were asked for."""
    via: list[str] = Field(default_factory=list)
    """What it was to pass."""
    avoid: list[str] = Field(default_factory=list)
    """What it was to keep out of."""
    others: list[OtherReply] = Field(default_factory=list)
    """Certified plans that take other ways, where they were asked for."""


class Change(Message):
    """Other regions or waypoints from a step of a drive on: a door that closes or opens, a place to pass."""

    step: int = Field(ge=0, le=2**20)
    """Of the drive, from which on they hold."""
    via: list[Text] | None = Field(default=None, max_length=16)
    """All places to pass; those that were passed before the step are not passed again. None: as before."""
    avoid: list[Text] | None = Field(default=None, max_length=32)
    """All regions to keep out of. None: as before."""


class MadePlan(Message):
    """A plan that a drive got on its way."""

    states: Annotated[list[State], Field(min_length=2, max_length=4096)]
    via: list[Text] = Field(default=[], max_length=16)
    """Places that it has still to pass."""


class DriveRequest(Message):
    """Follow a plan in the real environment."""

    model: str = Field(max_length=200)
    start: State
    """As for a plan."""
    goal: State
    states: Annotated[list[State], Field(min_length=2, max_length=4096)]
    """The plan to follow."""
    replan: bool = True
    """Whether a lost agent gets a new plan."""
    seed: int = Field(default=0, ge=0, le=2**20)
    """The same seed, plans and regions give the same drive."""
    via: list[Text] = Field(default=[], max_length=16)
    """What the plan was to pass, for new plans on the way."""
    avoid: list[Text] = Field(default=[], max_length=32)
    """What it was to keep out of, likewise."""
    changes: list[Change] = Field(default=[], max_length=64)
    """What steers the drive from some step on; the plan is repaired or made anew from where the agent is then."""
    made: list[MadePlan] = Field(default=[], max_length=32)
    """New plans of an earlier drive, `replanned` there, which this one gets instead of others, in the same order. So a
    drive can be driven again up to a step, and from there on otherwise."""


class Problem(Message):
    """Every refusal: one sentence."""

    detail: str


class ModelsReply(Message):
    default: str
    wave: int
    """Candidates made at a time when nobody else is waiting."""
    rows: int
    """Chunks that a request may have made at a time: its `wave` may be this over K, and always the one above."""
    limits: dict[str, int]
    orders: list[str]
    """In which chunks can be denoised."""
    rules: list[str]
    """Step rules of the sampler."""
    scores: list[str]
    """By which plans can be chosen."""
    blendings: list[str]
    """By which chunks can be merged."""
    models: list[ModelReply]


class Health(Message):
    status: Literal["ok", "degraded", "down"]
    """Degraded: some models cannot be asked. Down: none can, and the reply's status is 503."""
    waiting: int
    running: int
    not_ready: dict[str, str]
    """What is not ready, and why."""
    detail: str
    """All that in a sentence."""
