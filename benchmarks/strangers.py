"""Other people's code, from checkouts of theirs: the paper's network and samplers, and OGBench's agents.

Nothing of it is shipped or copied: modules are imported from where they lie. What the authors' import besides, for
data, pictures and logs, is not needed here and is replaced by empty modules: PyTorch, NumPy, einops and tqdm are
enough.
"""

from __future__ import annotations

import ast
import importlib
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compdiffuser.types import Array, Episodes, UserError

CONFIG = "config/ogb_pnt_maze/og_pntM_Gi_o2d_Cd_Stgl_PadBuf_Ft64_ts512.py"
MODELS = "diffuser.models.cd_stgl_sml_dfu"
SAMPLERS = {"autoregressive": "comp_pred_p_loop_n", "parallel": "comp_pred_p_loop_n_same_t_parallel"}
"""Our orders, and the methods of the authors' class that denoise in them."""
REPEAT = "batch_repeat_tensor_in_dict"
"""The one function of their utilities that sampling calls."""
PARTS = {
    "diffuser": "diffuser",
    "diffuser.utils": None,
    "diffuser.models": "diffuser/models",
    MODELS: "diffuser/models/cd_stgl_sml_dfu",
    "diffuser.models.comp_dfu": "diffuser/models/comp_dfu",
    "diffuser.models.cond_cp_dfu": "diffuser/models/cond_cp_dfu",
    "diffuser.ogb_task": None,
    "diffuser.ogb_task.og_models": None,
    "diffuser.ogb_task.og_models.dit_1d_traj_encoder": None,
}
"""Packages whose `__init__` would import the whole project, and the folders in which their modules are found."""


class Release:
    """The authors' network for the giant maze, untrained, with their samplers: times do not depend on weights."""

    def __init__(self, folder: Path, device: torch.device, steps: int, guidance: float) -> None:
        if not (folder / CONFIG).is_file():
            raise UserError(f"'{folder}' is no checkout of the authors' release: it has no {CONFIG}")
        with borrowed(folder):
            settings = runpy.run_path(str(folder / CONFIG))["base"]["diffusion"]
            network = importlib.import_module(f"{MODELS}.stgl_sml_temporal_cond_v1").Unet1D_TjTi_Stgl_Cond_V1
            sys.modules[MODELS].Unet1D_TjTi_Stgl_Cond_V1 = network  # type: ignore[attr-defined]
            diffusion = importlib.import_module(f"{MODELS}.stgl_sml_diffusion_v1").Stgl_Sml_GauDiffusion_InvDyn_V1
            self.horizon, self.dim = settings["sm_horizon"], 2
            sizes = {name: settings[name] for name in ("base_dim", "dim_mults", "time_dim", "network_config")}
            chosen = ("loss_type", "clip_denoised", "predict_epsilon", "action_weight", "loss_discount", "loss_weights")
            told = {name: settings[name] for name in chosen}
            asked = {**settings["diff_config"], "ddim_steps": steps, "condition_guidance_w": guidance}
            self.model = diffusion(
                network(self.horizon, self.dim, **sizes), self.horizon, self.dim, 0, settings["n_diffusion_steps"],
                diff_config=asked, **told,
            )  # fmt: skip
        self.model.to(device).eval()
        self.device = device

    @property
    def parameters(self) -> int:
        return sum(weight.numel() for weight in self.model.model.parameters())

    def sample(self, order: str, chunks: int, candidates: int) -> list[Tensor]:
        """K chunks [B, H, D], by the sampler of an order."""
        ends = torch.zeros(candidates, self.dim, device=self.device)
        conditions = {0: ends - 0.5, self.horizon - 1: ends + 0.5}
        shape = (candidates, self.horizon, self.dim)
        made: list[Tensor] = getattr(self.model, SAMPLERS[order])(shape, conditions, n_comp=chunks)
        return made


@contextmanager
def borrowed(folder: Path) -> Iterator[None]:
    """The authors' modules can be imported within the block. Raises UserError for a package that they need."""
    before = set(sys.modules)
    for name, place in PARTS.items():
        module = ModuleType(name)
        module.__path__ = [str(folder / place)] if place else []
        sys.modules[name] = module
    utils: Any = sys.modules["diffuser.utils"]
    utils.print_color = utils.watch = lambda *given, **named: None
    vars(sys.modules["diffuser.ogb_task.og_models.dit_1d_traj_encoder"])["DiT1D_Traj_Time_Encoder"] = None
    sys.modules["diffuser"].utils = utils  # type: ignore[attr-defined]
    try:
        setattr(utils, REPEAT, function_in(folder / "diffuser/utils/arrays.py", REPEAT))
        yield
    except ImportError as error:
        raise UserError(f"the authors' network cannot be built here: {error}") from None
    finally:
        for name in set(sys.modules) - before:
            if name.split(".")[0] == "diffuser":
                del sys.modules[name]


def function_in(path: Path, name: str) -> Callable[..., Any]:
    """One function of a file, without what the file imports but NumPy, PyTorch and einops."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    if not found:
        raise UserError(f"'{path}' has no function {name}")
    names: dict[str, Any] = {"torch": torch, "np": np}
    with suppress(ImportError):  # whoever cannot do without it says so
        names["einops"] = importlib.import_module("einops")
    exec(compile(ast.Module(found, []), str(path), "exec"), names)
    made: Callable[..., Any] = names[name]
    return made


class OGBench:
    """OGBench's own loop: draw a batch with NumPy, update an agent with JAX."""

    def __init__(self, folder: Path, method: str, data: Episodes, settings: Mapping[str, Any]) -> None:
        """`settings` by OGBench's names; those that the method does not have are passed over."""
        impls = folder / "impls"
        if not (impls / "agents").is_dir():
            raise UserError(f"'{folder}' is no checkout of OGBench: it has no impls/agents")
        sys.path.insert(0, str(impls))
        try:
            agent = importlib.import_module(f"agents.{method}")
            datasets = importlib.import_module("utils.datasets")
        except ImportError as error:
            raise UserError(f"OGBench's agents cannot be run here: {error}") from None
        finally:
            sys.path.remove(str(impls))
        config = agent.get_config()
        self.config = dict(config)
        """Its own settings, before they were changed."""
        config.update({name: value for name, value in settings.items() if name in config})
        states: dict[str, Array] = {name: np.asarray(getattr(data, name)) for name in ("observations", "actions")}
        last = np.cumsum(data.lengths) - 1
        valids, ends = np.ones(len(states["actions"]), np.float32), np.zeros(len(states["actions"]), np.float32)
        valids[last] = 0
        ends[np.concatenate([last - 1, last])] = 1  # as OGBench's own loader marks them
        made = datasets.Dataset.create(**states, valids=valids, terminals=ends)
        self.data = getattr(datasets, config["dataset_class"])(made, config)
        self.batch = config["batch_size"]
        kind = getattr(agent, f"{method.upper()}Agent")
        example = self.data.sample(1)
        self.agent = kind.create(0, example["observations"], example["actions"], config)

    def update(self) -> None:
        self.agent, self.told = self.agent.update(self.data.sample(self.batch))

    def wait(self) -> None:
        """Until the device has done what it was asked for."""
        import jax

        jax.block_until_ready(self.told)
