"""Folders of planners on the Hugging Face hub: fetched once into its cache, and uploaded in one commit.

The cache, its place (`HF_HOME`), tokens and `HF_HUB_OFFLINE` are huggingface_hub's own. What goes wrong there becomes
one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compdiffuser import artifact
from compdiffuser.checks import brief
from compdiffuser.types import UserError

LONGEST_ID = 200
"""Characters of a hub id."""
LIBRARY = "compdiffuser"


def fetched(repository: str, kind: str) -> Path:
    """The folder of an artifact on the hub, from the cache where it is there already.

    The config comes first: of a repository that holds something else, no weights are downloaded. Raises UserError where
    there is none, where it holds no artifact of this kind, and where the hub cannot be reached.
    """
    with _told(f"'{repository}' is no folder here and cannot be fetched from the hub"):
        from huggingface_hub import snapshot_download

        first = Path(snapshot_download(repository, allow_patterns=[artifact.CONFIG], library_name=LIBRARY))
        if not (first / artifact.CONFIG).is_file():
            raise UserError(f"'{repository}' on the hub holds no {kind}: it has no {artifact.CONFIG}")
        if (found := artifact.kind_of(first)) != kind:
            what = f"its {artifact.CONFIG} says '{brief(found)}'" if found else f"its {artifact.CONFIG} is another's"
            raise UserError(f"'{repository}' on the hub holds no {kind}: {what}")
        # Of the same commit, even where another one is pushed meanwhile.
        files = [artifact.CONFIG, f"*{artifact.SUFFIX}"]
        return Path(snapshot_download(repository, revision=first.name, allow_patterns=files, library_name=LIBRARY))


def check_push(repository: str) -> None:
    """Raises UserError for what cannot be the id of a repository, and where there is no token to write with."""
    owner, _, name = repository.partition("/")
    if not (owner and name) or "/" in name or len(repository) > LONGEST_ID:
        raise UserError(f"a repository on the hub is named owner/name, not '{brief(repository)}'")
    with _told(f"'{repository}' cannot be pushed to the hub"):
        from huggingface_hub import get_token

        if get_token() is None:
            needed = "log in with `hf auth login`, or set HF_TOKEN to a token that may write"
            raise UserError(f"to push to the hub, {needed}")


def uploaded(folder: Path, repository: str, *, private: bool = False) -> str:
    """Upload a folder in one commit, into a new repository where there is none; its address.

    Weights that lay there before and are not in the folder are removed. Raises UserError where the hub refuses or
    cannot be reached.
    """
    with _told(f"'{repository}' cannot be pushed to the hub"):
        from huggingface_hub import HfApi

        api = HfApi(library_name=LIBRARY)
        address = api.create_repo(repository, private=private or None, exist_ok=True)
        api.upload_folder(
            repo_id=repository, folder_path=folder, commit_message="Upload a planner",
            delete_patterns=[f"*{artifact.SUFFIX}"],
        )  # fmt: skip
    return str(address)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Turns what the hub's library raises into one sentence that begins with `what`."""
    try:
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError
    except ImportError:
        raise UserError(f"{what}: install huggingface_hub") from None
    try:
        yield
    except UserError:
        raise
    except RepositoryNotFoundError:
        raise UserError(
            f"{what}: there is no such repository, or it is private and your token may not see it"
        ) from None
    except HFValidationError as error:
        raise UserError(f"{what}: {_first(error)}") from None
    except LocalEntryNotFoundError:
        offline = "HF_HUB_OFFLINE is set" if _offline() else "the hub cannot be reached"
        raise UserError(f"{what}: {offline}, and it is not in the cache") from None
    except Exception as error:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) is not None:  # the machine's, not the hub's
            raise
        reason = "the hub cannot be reached" if _unreachable(error) else _first(error)
        raise UserError(f"{what}: {reason}") from None


def _offline() -> bool:
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def _unreachable(error: BaseException) -> bool:
    """Whether no answer came at all; the library that says so changes with huggingface_hub's version."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(
        names & {"ConnectionError", "ConnectError", "ConnectTimeout", "OfflineModeIsEnabled", "TimeoutException"}
    )


def _first(error: Exception) -> str:
    """The first line of what an error says."""
    return brief(next(iter(str(error).strip().splitlines()), type(error).__name__)).rstrip(".")
