"""Two inputs that one layer hardly tells apart, and the FFN width that they force.

After arXiv 2510.06662, Lemma 4. F(z) = sum_j a_j act(b_j z + c_j) with |a_j|, |b_jk| <= 1 and a
1-Lipschitz act has |F(z) - F(z')| <= width * |z - z'|_1. If F is within eps of targets that differ
by gap, then width >= (gap - 2 eps) / |z - z'|_1; |.|_1 <= sqrt(E) |.|_2 gives the paper's form.
Here z is all that a one-layer network knows of its input, W_O and residual included.
"""

import dataclasses

import jax
import numpy as np

from infoflow_jax.calculus.meaning import Weights, evaluate
from infoflow_jax.calculus.tree import Target
from infoflow_jax.networks import transformer
from infoflow_jax.networks.config import NetworkConfig, Params
from sweep_jax.checks import require

# Of a sum of some hundred rounded numbers, generously: distances below it prove nothing.
_ROUNDING = 2.0**-44


@dataclasses.dataclass(frozen=True)
class Certificate:
    """Inputs (T, d), their targets, and the L1 distance of what the layer makes of them.

    `distance` has been run in float64 and made larger by a bound on rounding.
    """

    a_TD: np.ndarray
    b_TD: np.ndarray
    target_a: float
    target_b: float
    distance: float

    @property
    def gap(self) -> float:
        """How far the targets are apart."""
        return abs(self.target_a - self.target_b)

    def width(self, eps: float) -> float:
        """The least hidden width of an FFN with weights in [-1, 1] that errs by at most eps.

        Raises:
          ValueError: eps < 0.
        """
        require(eps >= 0, "eps", eps, "a number >= 0")
        return max(0.0, self.gap - 2 * eps) / self.distance


def certify(
    config: NetworkConfig,
    params: Params,
    target: Target,
    weights: Weights,
    a_TD: np.ndarray,
    b_TD: np.ndarray,
) -> Certificate:
    """Runs the layer and the brute-force meaning on both inputs; believes nothing it was told.

    Raises:
      ValueError: more than one layer, or not float64, or a target that is no scalar.
    """
    require(config.layers == 1, "layers", config.layers, "1: all that c0 knows is one vector")
    require(config.dtype == "float64", "dtype", config.dtype, "float64")
    net = transformer.Network(config)
    with jax.enable_x64(True):
        z_E, other_E = (
            np.asarray(net.apply({"params": params}, x_TD, method="first_mixed"))
            for x_TD in (a_TD, b_TD)
        )
    values = [evaluate(target, x_TD, weights) for x_TD in (a_TD, b_TD)]
    require(values[0].ndim == 0, "target", values[0].shape, "a scalar")
    slack = _ROUNDING * (1 + np.abs(z_E).sum() + np.abs(other_E).sum())
    distance = float(np.abs(z_E - other_E).sum() + slack)
    return Certificate(a_TD, b_TD, float(values[0]), float(values[1]), distance)
