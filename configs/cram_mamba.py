"""Mamba at the scale of the papers: m = 1..5, 50 targets a source.

Command:  python launch.py --config=configs/cram_mamba.py         # progressive
          python launch.py --config=configs/cram_mamba.py:paper   # as published; or :kuratov
          python launch.py --config=configs/cram_mamba.py:smoke   # random weights, no network
          also with --config.source.path= state-spaces/mamba-370m-hf, mamba-790m-hf, mamba-1.4b-hf
Published: capacity 32 on text for 130M (arXiv 2502.13063)
Expected: hours on a GPU; `--mode=plan` estimates them. Not run at this scale yet.
"""

from ml_collections import ConfigDict

from configs.cram import cram_config, sweep

__all__ = ["get_config", "sweep"]


def get_config(arg: str = "") -> ConfigDict:
    """Arguments as in `configs/cram.py`."""
    return cram_config("state-spaces/mamba-130m-hf", "random:mamba", arg).lock()
