"""Qwen2.5 at the scale of the papers: m = 1..5, 50 targets a source.

Command:  python launch.py --config=configs/cram_qwen.py         # progressive
          python launch.py --config=configs/cram_qwen.py:paper   # as published; or :kuratov
          python launch.py --config=configs/cram_qwen.py:smoke   # random weights, no network
          also with --config.source.path= Qwen/Qwen2.5-1.5B
Published: n50 of text 56.1 125.6 207.4 268.5 339.7,
          of words 32.9 72.1 109.4 148.4 178.0 for 0.5B
Expected: hours on a GPU; `--mode=plan` estimates them. Not run at this scale yet.
"""

from ml_collections import ConfigDict

from configs.cram import cram_config, sweep

__all__ = ["get_config", "sweep"]


def get_config(arg: str = "") -> ConfigDict:
    """Arguments as in `configs/cram.py`."""
    return cram_config("Qwen/Qwen2.5-0.5B", "random:qwen", arg).lock()
