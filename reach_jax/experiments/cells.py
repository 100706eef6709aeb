"""How much of the support does each token's cell take? Counted, with an interval for every token.

Regions: ball of the states' radius about the origin, their box, their ellipsoid of inertia, and the
states themselves. Rules: argmax, which is what a model does, and nearest neighbour, which is what
the published analysis counts; both see the same points.
"""

import dataclasses
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from reach_jax.analysis import geometry_figures
from reach_jax.experiments import sampling, zoo
from reach_jax.geometry import bodies, cells_speed
from reach_jax.geometry import cells as token_cells
from reach_jax.geometry.states import SupportConfig
from sweep_jax import atomic, drawing, progress, provenance
from sweep_jax.cells import Cell, shard
from sweep_jax.checks import require, resolve
from sweep_jax.experiment import Context
from sweep_jax.report import Section, write_report
from sweep_jax.stop import Stopped
from sweep_jax.store import Result, table, write_table

EXCLUDED = ("axes",)
REGIONS = ("ball", "box", "ellipsoid", "states")
RULES = ("argmax", "nearest")
_BATCH = 16_384  # points at once
_TOP = 10  # cells on the page
LEAD = """The share of a region in which each token has the greatest logit (argmax), or the nearest
row (nearest: the published stand-in for it). Argmax cells are cones from the origin where there is
no output bias, so in a ball about the origin their shares do not depend on its radius. Every token
has an exact binomial interval of its own; one that was never hit has an upper end only, and may or
may not be reachable (docs/results/unreachable.md decides that)."""


@dataclasses.dataclass(frozen=True)
class Item:
    """What one cell counts."""

    region: str
    rule: str
    block: int

    def __post_init__(self) -> None:
        require(self.region in REGIONS, "region", self.region, f"one of {REGIONS}")
        require(self.rule in RULES, "rule", self.rule, f"one of {RULES}")
        require(self.block >= 0, "block", self.block, "an integer >= 0")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything the experiment reads."""

    seed: int
    choice: zoo.Choice
    points: int
    confidence: float
    support: SupportConfig


def settings(config: ConfigDict) -> Settings:
    """Resolves `config`.

    Raises:
      ValueError: a field is missing, unknown, of the wrong type, or does not fit the others.
    """
    values = config.to_dict()
    points, confidence = values["points"], values["confidence"]
    require(points >= 1, "config.points", points, "an integer >= 1")
    require(0 < confidence < 1, "config.confidence", confidence, "in (0, 1)")
    support = resolve(SupportConfig, values["support"], "config.support")
    return Settings(values["seed"], zoo.choice(values), points, confidence, support)


def _items(cells: Sequence[Cell]) -> list[Item]:
    return [resolve(Item, cell.config["cell"], "config.cell") for cell in cells]


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses what cannot run, with ValueError, before any device work."""
    zoo.describe(settings(config).choice)
    _items(cells)


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell, with the multiply-adds of its logits."""
    s = settings(config)
    model = zoo.describe(s.choice)
    point = 0 if model is None else 2 * model.vocab_size * model.width
    rows = [
        {"name": cell.name, **dataclasses.asdict(item), "points": _points(s, item)}
        | {"GFLOP": round(_points(s, item) * point / 1e9, 1)}
        for cell, item in zip(cells, _items(cells), strict=True)
    ]
    return pd.DataFrame(rows)


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Counts what is missing.

    Raises:
      Stopped: on request, between two batches; the part at hand is lost.
    """
    s = settings(config)
    mine = shard(cells, context.shard)
    pending = context.store.pending(mine)
    if not pending:
        return
    model = zoo.load(s.choice, context.workdir, context.stop)
    found = sampling.measured(model, s.support, s.seed)
    head_VD = sampling.head(model)
    heads = {
        "argmax": token_cells.chunked(head_VD),
        "nearest": token_cells.chunked(head_VD, token_cells.nearest_offset(head_VD)),
    }
    _show_speed(heads["argmax"], context)
    origin = provenance.collect() | {"model": sampling.card(model)}
    total = sum(_points(s, item) for item in _items(mine))
    left = sum(_points(s, item) for item in _items(pending))
    with progress.bar(total, "counting", "points", total - left) as bar:
        for cell, item in zip(pending, _items(pending), strict=True):

            def watched(item: Item = item) -> Iterator[Any]:
                for batch_ND in _draws(s, model, found, item):
                    if context.stop.requested:
                        raise Stopped("stopped within a part; the same command begins it again")
                    yield batch_ND
                    bar.update(len(batch_ND), last=f"{item.region}, {item.rule}")

            began = time.perf_counter()
            counts_V = token_cells.count(watched(), heads[item.rule], model.tokens)
            took = round(time.perf_counter() - began, 3)
            order = np.argsort(-counts_V, kind="stable")[:_TOP]
            metrics = {
                "points": int(counts_V.sum()),
                "hit": int((counts_V > 0).sum()),
                "top": order,
                "top_texts": [repr(model.text([token])) for token in order.tolist()],
            }
            context.store.write(
                cell, Result("ok", metrics, 0.0, took), origin, {"counts": counts_V}
            )


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes tables, figure and page from what is stored; returns the text to print."""
    s = settings(config)
    write_table(table(context.store, cells), context.workdir)
    done = context.store.done(cells)
    if not done:
        return f"nothing to report yet in {context.workdir}"
    counts: dict[tuple[str, str], np.ndarray] = {}
    names: dict[int, str] = {}
    for cell, item in zip(done, _items(done), strict=True):
        key = (item.rule, item.region)
        counts[key] = counts.get(key, 0) + context.store.arrays(cell)["counts"]
        record = context.store.read(cell) or {}
        names |= dict(zip(record["metrics"]["top"], record["metrics"]["top_texts"], strict=True))
    shares = {key: token_cells.shares(counts_V, s.confidence) for key, counts_V in counts.items()}
    summary, top = _summary(shares), _top(shares, names)
    _write_intervals(shares, context)
    descending = {
        key: np.sort(value.share_V[value.share_V > 0])[::-1].tolist()
        for key, value in sorted(shares.items())
    }
    least = 1 / max(value.points for value in shares.values())
    drawn = geometry_figures.shares_by_rank(descending, least)
    figure = drawing.save(drawn, context.workdir / "figures" / "shares")[1]
    origin = (context.store.read(done[0]) or {})["provenance"]
    card = origin["model"]
    model = f"model: {card['name']}, quantised weights: {card['quantised']}"
    speed = _speed_line(context)
    page = context.workdir / "report.html"
    write_report(
        page,
        f"Token cells of {card['name']}",
        LEAD,
        [
            Section("Shares", f"{model}. {speed}", [("", summary)], [("By rank", figure)]),
            Section("Largest cells", "Estimates and intervals.", [("", top)]),
        ],
        origin,
    )
    parts = [model, speed, _plain(summary), _plain(top[top["rank"] <= 3]), f"report: {page}"]
    return "\n\n".join(parts)


def _points(s: Settings, item: Item) -> int:
    states = s.support.samples * len(s.support.lengths)
    return states if item.region == "states" else s.points


def _draws(s: Settings, model: zoo.Model, found: sampling.Measured, item: Item) -> Iterator[Any]:
    """The points of a region; the key knows nothing of the rule, so both rules see the same."""
    if item.region == "states":
        yield from sampling.batches(model, s.support, s.seed)
        return
    fold = 1 + REGIONS.index(item.region) + len(REGIONS) * item.block
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(s.seed), 0xCE11), fold)
    support, D = found.support, len(found.mean_D)
    if item.region == "ball":
        yield from bodies.ball(key, s.points, D, support.r_2, _BATCH)
    elif item.region == "box":
        yield from bodies.box(key, s.points, support.lo_D, support.hi_D, _BATCH)
    else:
        yield from bodies.ellipsoid(key, s.points, found.mean_D, found.covariance_DD, _BATCH)


def _summary(shares: dict[tuple[str, str], token_cells.Shares]) -> pd.DataFrame:
    rows = [
        {
            "rule": rule,
            "region": region,
            "points": value.points,
            "tokens hit": value.hit,
            "hold half": value.holding(0.5),
            "hold 90 %": value.holding(0.9),
            "largest": float(value.share_V.max()),
            "least upper end": float(value.high_V.min()),
            "mean -ln share, hit": value.mean_log_share,
            "all, at least": value.least_mean_log_share,
        }
        for (rule, region), value in sorted(shares.items())
    ]
    return pd.DataFrame(rows)


def _top(shares: dict[tuple[str, str], token_cells.Shares], names: dict[int, str]) -> pd.DataFrame:
    rows = []
    for (rule, region), value in sorted(shares.items()):
        known = [t for t in np.argsort(-value.share_V, kind="stable").tolist() if t in names]
        for rank, token in enumerate(known[:_TOP], start=1):
            ends = {"low": float(value.low_V[token]), "high": float(value.high_V[token])}
            row = {"rule": rule, "region": region, "rank": rank, "token": token}
            rows.append(row | {"text": names[token], "share": float(value.share_V[token])} | ends)
    return pd.DataFrame(rows)


def _write_intervals(shares: dict[tuple[str, str], token_cells.Shares], context: Context) -> None:
    """shares.csv: the interval of every token, hit or not."""
    parts = [
        pd.DataFrame(
            {
                "rule": rule,
                "region": region,
                "token": np.arange(len(value.share_V)),
                "share": value.share_V,
                "low": value.low_V,
                "high": value.high_V,
            }
        )
        for (rule, region), value in sorted(shares.items())
    ]
    atomic.write_text(context.workdir / "shares.csv", pd.concat(parts).to_csv(index=False))


def _show_speed(head: token_cells.Head, context: Context) -> None:
    """Times the counting loop beside this machine's matrix products, prints it and keeps it."""
    speed = cells_speed.measure(head, square=cells_speed.SQUARE)
    kept = {
        "gflops": float(np.median(speed.loop_R)),
        "square_gflops": float(np.median(speed.square_R)),
        "share": speed.share,
        "best_share": speed.best_share,
    }
    atomic.write_text(context.workdir / "speed.json", json.dumps(kept) + "\n")
    print(_speed_line(context))


def _speed_line(context: Context) -> str:
    kept = atomic.read_json(context.workdir / "speed.json")
    if kept is None:
        return "speed was not measured"
    size = cells_speed.SQUARE
    return (
        f"counting runs at {kept['gflops']:.0f} GFLOP/s, {100 * kept['share']:.0f} % of this"
        f" machine's float32 product of {size} x {size} matrices ({kept['square_gflops']:.0f}"
        f" GFLOP/s; medians of turns, best turns {100 * kept['best_share']:.0f} %)"
    )


def _plain(frame: pd.DataFrame) -> str:
    return frame.to_string(index=False, float_format=lambda x: f"{x:.3g}")
