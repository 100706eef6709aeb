"""The success curves that arXiv 2605.22223 draws, and which of them belong beside a run.

The points are in `published_cramming.json`, decoded from the figures' vector graphics; no number of
this project is there. Success is teacher-forced in them and a text's source is PG-19, so a curve
beside ours is the same experiment in kind, not in every setting.
"""

import json
import re
from functools import cache
from pathlib import Path

from reach_jax.experiments import published_models, zoo

Curves = dict[str, dict[int, tuple[list[float], list[float]]]]  # source -> m -> lengths, shares
_FILE = Path(__file__).with_name("published_cramming.json")
_QUANTISED = re.compile(r"[-_.](i?q\d|f16|bf16|fp16).*$")  # what a converted copy's name ends in


@cache
def load() -> dict[str, Curves]:
    """Hub id -> source ("text", "words") -> m -> (lengths in tokens, shares of targets)."""
    values = json.loads(_FILE.read_text(encoding="utf-8"))
    del values["_about"]
    return {
        name: {
            source: {int(m): (lengths, shares) for m, (lengths, shares) in by_m.items()}
            for source, by_m in sources.items()
        }
        for name, sources in values.items()
    }


def find(known: zoo.Known, width: int) -> str | None:
    """The hub id of the published model that this is, or is a copy of; None for any other.

    Args:
      known: what is kept of the run's model; its name and its source are compared without the
        owner, case, punctuation, and the name of a quantisation. A tuned model has another name.
      width: D of the stored prompts, which must be the published model's.
    """
    names = {_plain(known.name), _plain(str(known.card.get("source", "")))}
    for name in load():
        config = published_models.config(name)
        if _plain(name) in names and config is not None and config.width == width:
            return name
    return None


def beside(name: str, drawn: dict[str, set[int]]) -> Curves:
    """The published curves of a model for the sources and m that are drawn, none left empty."""
    found = {
        source: {m: curve for m, curve in by_m.items() if m in drawn.get(source, set())}
        for source, by_m in load()[name].items()
    }
    return {source: by_m for source, by_m in found.items() if by_m}


def _plain(name: str) -> str:
    last = _QUANTISED.sub("", name.lower().rsplit("/", 1)[-1].removesuffix(".gguf"))
    return re.sub(r"[^a-z0-9]", "", last)
