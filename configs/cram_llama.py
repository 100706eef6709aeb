"""Llama-3.2 at the scale of the papers: m = 1..5, 50 targets a source.

Command:  python launch.py --config=configs/cram_llama.py         # progressive
          python launch.py --config=configs/cram_llama.py:paper   # as published; or :kuratov
          python launch.py --config=configs/cram_llama.py:smoke   # random weights, no network
Published: n50 of text 45.2 144.5 277.7 454.7 578.9,
          of words 26.1 61.0 118.1 184.2 321.0 for 1B
Expected: hours on a GPU; `--mode=plan` estimates them. Not run at this scale yet.
"""

from ml_collections import ConfigDict

from configs.cram import cram_config, sweep

__all__ = ["get_config", "sweep"]


def get_config(arg: str = "") -> ConfigDict:
    """Arguments as in `configs/cram.py`."""
    return cram_config("meta-llama/Llama-3.2-1B", "random:llama", arg).lock()
