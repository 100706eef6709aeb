"""From what a person types, a path or a hub id, to a directory in the Hugging Face layout.

Not a loader. A GGUF file is converted once and the result kept; a hub id goes through
`huggingface_hub` and its own cache, and needs the network only the first time.
"""

import hashlib
import re
import shutil
from pathlib import Path

import huggingface_hub
from huggingface_hub import errors

from reach_jax.hub import gguf_file
from sweep_jax import atomic, lock
from sweep_jax.checks import BadInput, require

# Safetensors and text only: what could hold a pickle is not even downloaded.
PATTERNS = (
    "config.json",
    "*.safetensors",
    "*.index.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "generation_config.json",
)
_ID = re.compile(r"[\w.-]+/[\w.-]+")


def locate(path_or_id: str, cache: Path, offline: bool) -> Path:
    """The checkpoint directory of a directory, a .gguf file or a hub id, made if need be.

    Args:
      path_or_id: an existing path, else a hub id as "org/name".
      cache: where converted GGUF files are kept.
      offline: never ask the network; HF_HUB_OFFLINE=1 does the same.

    Raises:
      ValueError: neither a path nor an id; no network, no permission or no such model on the hub;
        or a GGUF file that cannot be converted.
    """
    check(path_or_id)
    path = Path(path_or_id).expanduser()
    if path.is_dir():
        return path
    return converted(path, cache) if path.is_file() else _download(path_or_id, offline)


def check(path_or_id: str) -> None:
    """Refuses what `locate` could never find; asks the disk only, and makes nothing.

    Raises:
      ValueError: neither an existing directory or .gguf file, nor of the form of a hub id.
    """
    path = Path(path_or_id).expanduser()
    if path_or_id and path.is_dir():  # an empty text is not the current directory
        return
    if path.suffix.lower() == ".gguf":
        require(path.is_file(), "model", path_or_id, "an existing file")
        return
    require(not path.exists(), "model", path_or_id, "a directory, a .gguf file or a hub id")
    ok = _ID.fullmatch(path_or_id) is not None and not path_or_id.startswith(".")
    require(ok, "model", path_or_id, "an existing directory or .gguf file, or a hub id org/name")


def converted(path: Path, cache: Path) -> Path:
    """The directory that a GGUF file was, or now is, converted to: `cache/<name>-<hash>`.

    The hash is of size, time of change, the first MiB and the conversion's version. Of several
    processes one converts and the others wait; a killed one leaves nothing that is taken for whole.
    """
    status = path.stat()
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read(1 << 20))
    digest.update(f"{status.st_size} {status.st_mtime_ns} {gguf_file.CONVERSION}".encode())
    return build(path, cache / f"{path.stem}-{digest.hexdigest()[:12]}")


def build(path: Path, target: Path) -> Path:
    """Converts a GGUF file to the directory `target` unless that exists; it appears whole."""
    if target.is_dir():
        return target
    partial = target.with_name(target.name + ".partial")
    # A directory that stays: the lock makes its own before it waits, so `partial` would race.
    with lock.held(target.with_name(".converting")):
        if not target.is_dir():
            shutil.rmtree(partial, ignore_errors=True)  # of a killed process
            partial.mkdir()
            gguf_file.convert(path, partial)
            partial.rename(target)
            atomic.sync(target.parent)
    return target


def _download(repo: str, offline: bool) -> Path:
    try:
        found = huggingface_hub.snapshot_download(
            repo, allow_patterns=list(PATTERNS), local_files_only=offline
        )
    except errors.GatedRepoError:
        raise BadInput(
            f"model {repo!r}: no permission. Accept its terms on its page on the hub and log in "
            "with `hf auth login`, or set HF_TOKEN"
        ) from None
    except errors.RepositoryNotFoundError:
        raise BadInput(
            f"model {repo!r}: no such path here and no such model on the hub, or it is private "
            "(then log in with `hf auth login`, or set HF_TOKEN)"
        ) from None
    except errors.LocalEntryNotFoundError:
        raise BadInput(
            f"model {repo!r}: no such path here, not in the hub's cache, and not to be had: "
            + ("offline, by the switch" if offline else "no network, or HF_HUB_OFFLINE is set")
        ) from None
    except Exception as error:  # transport errors have no common type across versions
        first = [type(error).__name__, *str(error).strip().splitlines()[:1]]
        raise BadInput(f"model {repo!r}: the hub cannot be read: {': '.join(first)}") from error
    return Path(str(found))
