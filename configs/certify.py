"""Certificates of crammed prompts: margins, rounding, and the ball around each that still holds.

Paper:    How Many Different Outputs Can a Transformer Generate? (arXiv 2605.22223): accessible at
          eps is a prompt whose whole ball of radius eps/2 emits the text.
Command:  python launch.py                                 # a reachability run first
          python launch.py --config=configs/certify.py     # --config.run.workdir=runs/reach_quick
          python launch.py --config=configs/certify.py:smoke  # after configs/reach_quick.py:smoke
Expected: one cell a stored prompt; docs/results/certify_quick.md.
"""

import json
from collections.abc import Callable
from pathlib import Path

from ml_collections import ConfigDict

from configs import _base


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the quick experiment's prompts or "smoke" for those of its smoke run."""
    _base.check_arg(arg, ("", "smoke"))
    config = _base.new_config("certify")

    config.run = ConfigDict()  # where the prompts are; their names name the cells
    config.run.workdir = "runs/reach_quick-smoke" if arg == "smoke" else "runs/reach_quick"

    config.cell = ConfigDict()
    config.cell.prompt = ""  # the name of a stored cell; the sweep sets it

    config.certificate = ConfigDict()
    config.certificate.samples = 8 if arg == "smoke" else 128  # random points of cube and of ball
    config.certificate.directed = 4 if arg == "smoke" else 16  # tokens attacked along the gradient
    config.certificate.decodes = 2  # points of each decoded for real
    config.certificate.low = -24  # eps from 2^low to 2^high embedding deviations
    config.certificate.high = 4
    config.certificate.per_octave = 4

    config.execution = ConfigDict()  # how, not what
    config.execution.batch = 288  # points judged at once
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a prompt that the other run stored and did not fail on."""
    workdir = Path(config.run.workdir)
    found = 0
    for path in sorted((workdir / "cells").glob("*.json")):
        try:
            done = json.loads(path.read_text())["status"] != "failed"
        except (ValueError, KeyError, TypeError):  # not that run's; it would compute it again
            done = False
        if done:
            add({"cell.prompt": path.stem})
            found += 1
    if not found:
        raise ValueError(
            f"config.run.workdir = {config.run.workdir!r}: expected the workdir of a reachability"
            " run with stored prompts (python launch.py makes runs/reach_quick)"
        )
