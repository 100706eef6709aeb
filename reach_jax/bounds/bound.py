"""One bound with what it assumes, and the first list of them for one model.

A bound may stand beside a measured slope only with its assumptions, so they travel together. Not
the place of any formula: those are in the sibling modules, and a further bound is one more entry.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from reach_jax.bounds.box import box_slope
from reach_jax.bounds.floats import float_bits, float_grid_slope, trivial_slope
from reach_jax.bounds.packing import ball_slope
from sweep_jax.checks import require

Support = Literal["prompts", "outputs"]
RELATIVE_EPS = 2.0**-11  # times the radius: the notebook shipped with arXiv 2605.22223
ABSOLUTE_EPS = 2.0**-10  # in units of the embedding: Table 1 of arXiv 2605.22223

INSIDE = {
    "prompts": "every prompt lies in the given support",
    "outputs": "the support is that of output embeddings, which optimised prompts need not keep to",
}


@dataclass(frozen=True)
class Bound:
    """An upper bound on the slope of n50 against the number of prompt vectors.

    Attributes:
      name: what a table or figure calls it.
      slope: C, in tokens per prompt vector.
      rigorous: whether it holds for the prompts as they are, with no model of the network's
        precision put in their place.
      theorem: the theorem or the argument that it comes from.
      assumptions: what must be true of the prompts for it to hold.
    """

    name: str
    slope: float
    rigorous: bool
    theorem: str
    assumptions: str
    units: ClassVar[str] = "tokens per prompt vector"

    def ratio(self, measured_slope: float) -> float:
        """The bound over a measured slope > 0 in tokens per prompt vector: 1 would be tight.

        Raises:
          ValueError: the slope is not a finite number > 0.
        """
        ok = bool(np.isfinite(measured_slope)) and measured_slope > 0
        require(ok, "measured_slope", measured_slope, "a finite number > 0")
        return self.slope / measured_slope


def first_bounds(
    lo_D: ArrayLike, hi_D: ArrayLike, vocabulary: int, dtype: DTypeLike, support_of: Support
) -> tuple[Bound, ...]:
    """Trivial bits, float grid, and the ball and the box on a uniform grid of two precisions.

    The ball's radius is the largest l_inf norm in the support, `max(|lo_D|, |hi_D|)`. The uniform
    grid is a model: floats of `dtype` are finer near zero, so ball and box are never rigorous for
    a float prompt, whoever's support is given; the float grid is for prompts inside theirs.

    Args:
      lo_D: [D] least value of each coordinate over the support, finite.
      hi_D: [D] greatest value, >= lo_D, finite.
      vocabulary: V >= 2.
      dtype: the type in which prompts are stored, one of `floats.DTYPES`.
      support_of: whose coordinates the box holds: the "prompts" themselves, or the "outputs" of
        the last layer as published.

    Raises:
      ValueError: shapes differ, lo > hi, the support is the origin alone, or a field is not as
        above.
    """
    supports = get_args(Support)
    require(support_of in supports, "support_of", support_of, f"one of {supports}")
    lo, hi = np.asarray(lo_D, np.float64), np.asarray(hi_D, np.float64)
    require(lo.ndim == 1 and lo.shape == hi.shape, "lo_D, hi_D", (lo.shape, hi.shape), "both [D]")
    require(bool(np.all(np.isfinite(lo) & np.isfinite(hi))), "lo_D, hi_D", (lo, hi), "finite ends")
    radius = float(max(np.abs(lo).max(), np.abs(hi).max()))
    require(radius > 0, "radius", radius, "a support beyond the origin")
    d, inside = lo.size, INSIDE[support_of]
    bounds = [
        Bound(
            name="trivial bits",
            slope=float(trivial_slope(d, vocabulary, dtype)),
            rigorous=True,
            theorem="counting",
            assumptions=f"each prompt vector is {d} numbers of {float_bits(dtype)} bits",
        ),
        Bound(
            name="float grid",
            slope=float(float_grid_slope(lo, hi, vocabulary, dtype)),
            rigorous=support_of == "prompts",
            theorem="counting",
            assumptions=f"prompts are {jnp.dtype(dtype).name} numbers; {inside}",
        ),
    ]
    for label, eps in (("r/2^11", RELATIVE_EPS * radius), ("2^-10", ABSOLUTE_EPS)):
        for shape, theorem, slope in (
            ("ball", "Corollary 4.6", ball_slope(d, vocabulary, radius, eps)),
            ("box", "Corollary 4.6 on a box", box_slope(hi - lo, vocabulary, eps)),
        ):
            bounds.append(
                Bound(
                    name=f"{shape}, eps = {label}",
                    slope=float(slope),
                    rigorous=False,
                    theorem=theorem,
                    assumptions=f"the network is constant on cubes of side eps = {label}; {inside}",
                )
            )
    return tuple(bounds)
