"""Gemma-3 at the scale of the papers: m = 1..5, 50 targets a source.

Command:  python launch.py --config=configs/cram_gemma.py         # progressive
          python launch.py --config=configs/cram_gemma.py:paper   # as published; or :kuratov
          python launch.py --config=configs/cram_gemma.py:smoke   # random weights, no network
          also with --config.source.path= google/gemma-3-1b-pt
Published: n50 of text 17.1 42.4 89.5 141.2 190.4,
          of words 10.0 24.4 47.7 77.2 98.4 for 270M
Expected: hours on a GPU; `--mode=plan` estimates them. Not run at this scale yet.
"""

from ml_collections import ConfigDict

from configs.cram import cram_config, sweep

__all__ = ["get_config", "sweep"]


def get_config(arg: str = "") -> ConfigDict:
    """Arguments as in `configs/cram.py`."""
    return cram_config("google/gemma-3-270m", "random:gemma", arg).lock()
