"""Which controller follows the plans of a dataset: the world's own, or one that was learned from its data."""

from __future__ import annotations

from compdiffuser import artifact
from compdiffuser.domains import Controller
from compdiffuser.files import pretrained_folder
from compdiffuser.following.inverse_dynamics import load_controller
from compdiffuser.presets import Preset
from compdiffuser.runs import run_folder
from compdiffuser.types import UserError


def controller_for(preset: Preset) -> Controller:
    """The controller of a dataset; of learned ones, the one trained here, else the shipped one.

    Where other dimensions than usual are planned, one that follows these comes before one that follows the usual ones.
    Its `source` says which it is. Raises UserError where there is none.
    """
    if preset.domain.controller is not None:
        return preset.domain.controller
    for label in dict.fromkeys((preset.label, preset.name)):
        for folder in (run_folder(label, "controller"), pretrained_folder() / "controllers" / label):
            if (folder / artifact.CONFIG).exists():
                return load_controller(folder)
    raise UserError(
        f"no controller is shipped for '{preset.name}'; train one with: compdiffuser train-controller {preset.name}"
    )


def seen_columns(controller: Controller, preset: Preset) -> list[int]:
    """Columns of a planned state that a controller reads.

    Raises UserError where it asks for what is not planned, or drives another body.
    """
    body = preset.domain.body
    if controller.body is not None and controller.body.name != body.name:
        whose = f"'{controller.source}'" if controller.source else "the controller"
        raise UserError(f"{whose} drives the body '{controller.body.name}'; '{preset.name}' moves '{body.name}'")
    planned = preset.space.dims
    wanted = planned if controller.space is None else controller.space.dims
    if missing := [dim for dim in wanted if dim not in planned]:
        raise UserError(
            f"the controller follows dimension {missing[0]} of an observation, which is not planned: "
            f"plans of '{preset.name}' have dimensions {', '.join(map(str, planned))}"
        )
    return [planned.index(dim) for dim in wanted]
