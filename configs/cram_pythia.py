"""Pythia at the scale of the papers: m = 1..5, 50 targets a source.

Command:  python launch.py --config=configs/cram_pythia.py         # progressive
          python launch.py --config=configs/cram_pythia.py:paper   # as published; or :kuratov
          python launch.py --config=configs/cram_pythia.py:smoke   # random weights, no network
          also with --config.source.path= EleutherAI/pythia-410m, EleutherAI/pythia-1b
Published: n50 of text 88.9 182.4 277.5 366.7 448.6,
          of words 53.9 102.7 149.9 194.8 228.5 for 160M
Expected: hours on a GPU; `--mode=plan` estimates them. Not run at this scale yet.
"""

from ml_collections import ConfigDict

from configs.cram import cram_config, sweep

__all__ = ["get_config", "sweep"]


def get_config(arg: str = "") -> ConfigDict:
    """Arguments as in `configs/cram.py`."""
    return cram_config("EleutherAI/pythia-160m", "random:pythia", arg).lock()
