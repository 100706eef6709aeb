"""Vectors at which a given token wins, searched for many tokens at once by matrix products.

Tries in turn, each for the tokens that are still open: given states; the row less the mean row;
the same in the metric of the rows' covariance, from the box's middle at several distances; then
relaxation (Agmon 1954): steps in that metric towards the half-space of the strongest rival. Rows
near one another decide whether the tries succeed, never whether the answer is right: what is
returned is a guess in float32, to be proved by `separation.proved_margins`.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.geometry.separation import Problem

_LOGITS = 2**25  # alive at once
_DISTANCES = (1.0, 0.3, 3.0, 10.0)  # along a direction, in a box; of its half width


@jax.jit
def _rivals(
    x_ND: jax.Array, tokens_N: jax.Array, rows_VD: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Margin of each token at its x, and the strongest other token; both (N,)."""
    logits_NV = jnp.einsum("nd,vd->nv", x_ND, rows_VD)
    own_N = jnp.take_along_axis(logits_NV, tokens_N[:, None], axis=1)[:, 0]
    is_own_NV = jnp.arange(rows_VD.shape[0])[None, :] == tokens_N[:, None]
    others_NV = jnp.where(is_own_NV, -jnp.inf, logits_NV)
    return own_N - others_NV.max(axis=1), jnp.argmax(others_NV, axis=1)


class Search:
    """The tries over one problem; the rows lie on the device in float32."""

    def __init__(self, p: Problem) -> None:
        """Factors the covariance of the rows."""
        self._p = p
        self._rows_VD = p.rows_VD.astype(np.float32)
        self._on_device_VD = jnp.asarray(self._rows_VD)
        self._mean_D = p.rows_VD.mean(axis=0)
        centred_VD = p.rows_VD - self._mean_D
        values_D, vectors_DD = np.linalg.eigh(centred_VD.T @ centred_VD / len(centred_VD))
        floor = max(values_D[-1], 0) * 1e-6 or 1.0
        inverse_DD = (vectors_DD / np.maximum(values_D, floor)) @ vectors_DD.T
        self._inverse_DD = inverse_DD.astype(np.float32)

    def margins(self, tokens_N: np.ndarray, x_ND: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Margin of each token at its x in float32, and the strongest rival; both (N,)."""
        size = max(1, min(_LOGITS // len(self._rows_VD), 1 << (len(tokens_N) - 1).bit_length()))
        margins, rivals = [], []
        for start in range(0, len(tokens_N), size):
            part = slice(start, start + size)
            short = size - len(tokens_N[part])  # padded: one compiled shape
            found = _rivals(
                jnp.asarray(np.pad(x_ND[part], ((0, short), (0, 0))), jnp.float32),
                jnp.asarray(np.pad(tokens_N[part], (0, short))),
                self._on_device_VD,
            )
            margins.append(np.asarray(found[0])[: size - short])
            rivals.append(np.asarray(found[1])[: size - short])
        return np.concatenate(margins), np.concatenate(rivals)

    def directions(self, tokens_N: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Name of a try, and its x for each token, (N, D)."""
        p = self._p
        centred_ND = self._rows_VD[tokens_N] - self._mean_D.astype(np.float32)
        whitened_ND = centred_ND @ self._inverse_DD
        if p.cone:
            yield "centred row", p.project(centred_ND)
            yield "whitened row", p.project(whitened_ND)
            return
        middle_D = (0.5 * (p.lo_D + p.hi_D)).astype(np.float32)
        half_D = (0.5 * (p.hi_D - p.lo_D)).astype(np.float32)
        for name, towards_ND in (("whitened row", whitened_ND), ("centred row", centred_ND)):
            relative_ND = np.abs(towards_ND) / np.where(half_D > 0, half_D, np.inf)
            unit_ND = towards_ND / np.maximum(relative_ND.mean(axis=1, keepdims=True), 1e-30)
            for distance in _DISTANCES:
                yield name, p.project(middle_D + np.float32(distance) * unit_ND)

    def relax(
        self, tokens_N: np.ndarray, steps: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Relaxation from the whitened row; at each step (places, x, rivals) of those still open.

        A place whose margin has become positive is yielded once more, with rival -1, and is left.
        """
        x_ND = next(x for by, x in self.directions(tokens_N) if by == "whitened row")
        place_N = np.arange(len(tokens_N))
        for _ in range(steps):
            if len(place_N) == 0:
                return
            margin_N, rival_N = self.margins(tokens_N[place_N], x_ND)
            yield place_N, x_ND, np.where(margin_N > 0, -1, rival_N)
            left_N = margin_N <= 0
            place_N, x_ND, margin_N = place_N[left_N], x_ND[left_N], margin_N[left_N]
            difference_ND = self._rows_VD[tokens_N[place_N]] - self._rows_VD[rival_N[left_N]]
            step_ND = difference_ND @ self._inverse_DD
            square_N = np.maximum((step_ND * difference_ND).sum(axis=1), 1e-30)
            # Past the half-space's face by a little of what a typical logit is there.
            beyond_N = 0.01 * np.abs((x_ND * self._rows_VD[tokens_N[place_N]]).sum(axis=1)) + 1e-6
            x_ND = self._p.project(x_ND + ((beyond_N - margin_N) / square_N)[:, None] * step_ND)
            x_ND = x_ND.astype(np.float32)
