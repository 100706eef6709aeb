"""All prompts of a grid through `decode.decode_block`, block by block, each block stored when done.

Being killed anywhere costs at most one block: a block is one atomic file, whose zip container
checks its bytes, and a damaged one is computed again. Numbers of a block are split over all
devices. Not a place for counting: `counts` does that with what comes back.
"""

import dataclasses
import time
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import jax
import numpy as np
from absl import logging

from reach_jax.enumeration import decode
from reach_jax.enumeration.grid import Grid
from reach_jax.models import decoder
from reach_jax.models.config import DecoderConfig
from sweep_jax import atomic, mesh
from sweep_jax.checks import require
from sweep_jax.stop import Stop, Stopped


@dataclasses.dataclass(frozen=True)
class Enumeration:
    """What is decoded: everything that decides a row, but the parameters."""

    model: DecoderConfig
    layout: decode.Layout
    grid: Grid
    length: int  # N, tokens

    def __post_init__(self) -> None:
        require(self.length >= 1, "length", self.length, "an integer >= 1")
        longest = decode.longest_row(self.model.vocab_size)
        expected = f"at most {longest}, as V^n must fit into 64 bits"
        require(self.length <= longest, "length", self.length, expected)
        same = self.model.width == self.grid.width
        require(same, "grid.width", self.grid.width, f"the model's, {self.model.width}")

    @property
    def free(self) -> int:
        """Leading prompt vectors whose order changes no output; see `decode.free_vectors`."""
        return decode.free_vectors(self.model, self.layout, self.grid.vectors)

    @property
    def flops(self) -> int:
        """Multiply-adds x 2 of all matrices, attention scores included, for all prompts."""
        c, N = self.model, self.length
        given = self.grid.vectors + (self.layout.end == "token")
        positions = given + N - 1
        scores = 4 * c.heads * c.head_width * c.layers * positions  # every cache slot is looked at
        head = 2 * c.width * c.vocab_size
        return self.grid.count * (positions * (c.flops_per_token + scores) + N * head)


@dataclasses.dataclass(frozen=True)
class Outputs:
    """What every prompt emits, in the order of their numbers.

    Attributes:
      keys: uint64, the row of N tokens in base V (`decode.pack`).
      margins: float32, each prompt's least margin.
      compile_seconds, run_seconds: wall time of this process; blocks found on disk cost none.
    """

    keys: np.ndarray
    margins: np.ndarray
    compile_seconds: float
    run_seconds: float


def run(
    spec: Enumeration,
    params: decoder.Params,
    block: int,
    directory: Path,
    stop: Stop,
    tell: Callable[[int], None],
) -> Outputs:
    """Decodes every prompt, or reads what an earlier run of the same `spec` and `params` stored.

    Args:
      spec: what is decoded.
      params: of `spec.model`.
      block: prompts a block, >= 1; rounded up to a multiple of the devices. A result depends on it
        in rounding only, and blocks of another size are not read.
      directory: of the block files, this enumeration's alone; the caller removes it.
      stop: looked at between two blocks.
      tell: called with the number of prompts that became known.

    Raises:
      Stopped: on request, when the last block is stored.
    """
    require(block >= 1, "block", block, "an integer >= 1")
    devices = mesh.row()
    block = -(-min(block, spec.grid.count) // devices.size) * devices.size
    rows = mesh.split(devices)
    params = jax.device_put(params, mesh.copied(devices))
    directory.mkdir(parents=True, exist_ok=True)
    atomic.remove_stale(directory)
    starts = range(0, spec.grid.count, block)
    found: list[tuple[np.ndarray, np.ndarray]] = []
    program, compiling, running = None, 0.0, 0.0
    for start in starts:
        path = directory / f"{block}-{start}.npz"
        part = _read(path)
        if part is None:
            if stop.requested:
                done = len(found)
                raise Stopped(
                    f"stopped after block {done} of {len(starts)};"
                    " run the same command again to resume"
                )
            # The last block is padded with its last prompt, so that one program serves all.
            numbers = np.minimum(np.arange(start, start + block), spec.grid.count - 1)
            numbers_B = jax.device_put(numbers.astype(np.uint32), rows)
            if program is None:
                began = time.perf_counter()
                program = _compile(spec, params, numbers_B)
                compiling = time.perf_counter() - began
            began = time.perf_counter()
            tokens_BN, margins_B = jax.device_get(program(params, numbers_B))
            running += time.perf_counter() - began
            real = min(block, spec.grid.count - start)
            part = decode.pack(tokens_BN[:real], spec.model.vocab_size), margins_B[:real]
            _write(path, *part)
        found.append(part)
        tell(len(part[0]))
    keys, margins = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Outputs(keys, margins, compiling, running)


def _compile(spec: Enumeration, params: decoder.Params, numbers_B: jax.Array) -> Any:
    lowered = decode.decode_block.lower(
        spec.model, spec.layout, spec.grid, params, numbers_B, spec.length
    )
    return lowered.compile()


def _write(path: Path, keys: np.ndarray, margins: np.ndarray) -> None:
    buffer = BytesIO()
    np.savez(buffer, keys=keys, margins=margins)
    atomic.write_bytes(path, buffer.getvalue())


def _read(path: Path) -> tuple[np.ndarray, np.ndarray] | None:
    """What a block file holds; None if it is absent, or damaged, which a warning then names."""
    try:
        with np.load(BytesIO(path.read_bytes())) as file:
            return file["keys"], file["margins"]
    except FileNotFoundError:
        return None
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError) as error:
        logging.warning("%s counts as absent: %s", path, error)
        return None
