"""Runs an experiment: expands its config into cells, computes what is missing, draws the report.

  python launch.py                                         # the quick experiment, about minutes
  python launch.py --config=configs/reach_quick.py:smoke   # the same in seconds
  python launch.py --config.training.steps=500             # one field set otherwise
  python launch.py --mode=plan                             # what would run, at what cost
  python launch.py --mode=report --workdir=runs/reach_quick

A run that was stopped or killed goes on when the same command is given again. Several processes
share one --workdir with --shard=0/2 and --shard=1/2; on one GPU give each its
--gpu_memory_fraction. --config=PATH or PATH:ARGUMENT names a config file, each field of which is a
flag: --config.SECTION.FIELD=VALUE; --config=PATH --help lists them. --flagfile=PATH reads flags
from a file, one a line.

Exit code: 0 done, 1 cells failed, 2 bad input, 130 or 143 stopped by SIGINT or SIGTERM.
"""

import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from sweep_jax import atomic, backend, cells, commandline, overrides, store
from sweep_jax.checks import BadInput, require
from sweep_jax.experiment import Context
from sweep_jax.stop import Stop, Stopped

DEFAULT_CONFIG = str(Path(__file__).resolve().parent / "configs" / "reach_quick.py")
_REACH = (
    *("reachability", "certify", "inspect", "bounds_published", "enumeration", "meanfield"),
    *("support", "cells", "unreachable", "plane", "copy"),
)
_INFOFLOW = ("analyze", "constructions", "witnesses", "trained", "probe")
EXPERIMENTS = {name: f"reach_jax.experiments.{name}" for name in _REACH}
EXPERIMENTS |= {name: f"infoflow_jax.experiments.{name}" for name in _INFOFLOW}
MODES = """run: compute the cells that are missing, then table and report; plan: print the
cells and their estimated cost, write nothing; table: print and write the table of the stored
cells; report: draw table, figures and page of the stored cells again."""


def define_flags(values: flags.FlagValues) -> None:
    """The launcher's own flags."""
    workdir = "Where results go; runs/CONFIG[-ARGUMENT] if not given."
    shard = "i/n: compute the i-th of n shares of the sweep, 0 <= i < n."
    memory = "Share of a GPU's memory to reserve, in (0, 1]; 0.45 each for two processes."
    flags.DEFINE_enum("mode", "run", ["run", "plan", "table", "report"], MODES, flag_values=values)
    flags.DEFINE_string("workdir", None, workdir, flag_values=values)
    flags.DEFINE_string("shard", "0/1", shard, flag_values=values)
    flags.DEFINE(overrides.Parser(float), "gpu_memory_fraction", None, memory, flag_values=values)
    devices = "Devices that the CPU is split into; lanes of small models are spread over them."
    flags.DEFINE(overrides.Parser(int), "cpu_devices", None, devices, flag_values=values)


def main(argv: Sequence[str]) -> int:
    """Returns the exit code; bad input is one line on stderr, other errors keep their traceback."""
    try:
        if {"-h", "-help", "--help"} & set(argv[1:]):
            print(commandline.help_text(__doc__ or "", define_flags, argv))
            return 0
        command = commandline.parse(argv, DEFAULT_CONFIG, define_flags)
        given, config, name = command.flags, command.config, command.config.get("experiment")
        memory, devices = given.gpu_memory_fraction, given.cpu_devices
        backend.prepare(given.mode, memory, config.precision, devices)
        require(name in EXPERIMENTS, "--config.experiment", name, f"one of {list(EXPERIMENTS)}")
        experiment = importlib.import_module(EXPERIMENTS[name])
        items = cells.expand(config, command.sweep, experiment.EXCLUDED)
        cells.shard(items, given.shard)  # only to refuse it early
        experiment.validate(config, items)
        if given.mode == "plan":
            plan = experiment.plan(config, items)
            axes = {field.split(".")[-1] for field in items[0].axes}
            costs = plan.drop(columns=axes & set(plan)).sum(numeric_only=True)
            sums = "".join(f", {name} {total:g}" for name, total in costs.items())
            print(f"{plan.to_string(index=False)}\n\n{len(items)} cells{sums}")
            return 0
        workdir = Path(given.workdir or Path("runs") / command.name)
        present = given.mode == "run" or (workdir / "schema.json").exists()
        require(present, "--workdir", str(workdir), "the directory of an earlier run")
        results = store.Store(workdir)
        results.done(items)  # an unreadable cell file is refused before any work
    except ValueError as error:
        return refuse(error)
    if given.mode == "table":
        frame = store.table(results, items)
        store.write_table(frame, results.workdir)
        print(frame.to_string(index=False))
        return 0
    context = Context(results.workdir, results, Stop(), given.shard)
    if given.mode == "run":
        atomic.write_text(results.workdir / "config.json", resolved := cells.dump_config(config))
        print(*(f"{k}: {json.dumps(v)}" for k, v in json.loads(resolved).items()), sep="\n")
        backend.configure(config.precision, results.workdir / "compile_cache")
        try:
            with context.stop:
                experiment.run(config, items, context)
        except Stopped as stopped:
            print(stopped, file=sys.stderr)
            return 128 + (context.stop.signum or 0)
        except BadInput as error:  # what only the loaded model could tell
            return refuse(error)
    print(experiment.report(config, items, context))
    failed = [cell.name for cell in items if (results.read(cell) or {}).get("status") == "failed"]
    if failed:
        print(f"{len(failed)} cells failed: {' '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def refuse(error: ValueError) -> int:
    """Prints bad input as one line; its exit code."""
    print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv))
