"""The key table's vocabulary: which tensor of a checkpoint fills which parameters, and how.

A parameter is named by its path in the tree, as "layers/attention/q"; a tensor by its name in the
file, with "{layer}" where there is one a layer. Nothing here reads a file.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

Transform = Callable[[np.ndarray], np.ndarray]


class Rule(NamedTuple):
    """One tensor (a layer) and the parameters that it fills; each transform gives one's slot."""

    tensor: str
    into: Mapping[str, Transform]


def same(tensor: np.ndarray) -> np.ndarray:
    """The tensor as it is."""
    return tensor


def transposed(tensor: np.ndarray) -> np.ndarray:
    """(out, in) as PyTorch's Linear keeps it, to (in, out)."""
    return tensor.T


def to_heads(width: int) -> Transform:
    """(H*N, D) of a Linear that makes heads of `width` N, to (D, H, N)."""
    return lambda tensor: tensor.T.reshape(tensor.shape[1], -1, width)


def from_heads(width: int) -> Transform:
    """(D, H*N) of a Linear that reads heads of `width` N, to (H, N, D)."""
    return lambda tensor: tensor.T.reshape(-1, width, tensor.shape[0])


def head_rows(width: int) -> Transform:
    """(H*N,) bias to (H, N)."""
    return lambda tensor: tensor.reshape(-1, width)


def rule(tensor: str, parameter: str, transform: Transform = same) -> Rule:
    """A tensor that fills one parameter."""
    return Rule(tensor, {parameter: transform})
