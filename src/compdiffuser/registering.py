"""Worlds of one's own, made known to every command and function."""

from __future__ import annotations

from compdiffuser.domains import BODIES, DOMAINS, Domain
from compdiffuser.presets import PRESETS, Preset, own_preset
from compdiffuser.types import UserError


def register(world: Domain, *datasets: Preset) -> Domain:
    """Make a world known to every command and function, its datasets and its body with it; returns the world.

    Without datasets, one of the world's own name is made, with usual settings. Raises UserError for a name that is
    taken, and for datasets of another world.
    """
    datasets = datasets or (own_preset(world.name, world),)
    if strange := next((each for each in datasets if each.domain.name != world.name), None):
        raise UserError(f"dataset '{strange.name}' is of the world '{strange.domain.name}', not of '{world.name}'")
    named = [dataset.name for dataset in datasets]
    if len(set(named)) < len(named):
        raise UserError(f"two datasets of '{world.name}' have the same name; choose another for one of them")
    for kind, known, names in (("world", DOMAINS, [world.name]), ("dataset", PRESETS, named)):
        if taken := [name for name in names if name in known]:
            raise UserError(f"there is already a {kind} '{taken[0]}'; choose another name")
    if type(BODIES.setdefault(world.body.name, world.body)) is not type(world.body):
        raise UserError(f"there is already a body '{world.body.name}'; choose another name")
    DOMAINS[world.name] = world
    PRESETS.update({dataset.name: dataset for dataset in datasets})
    return world
