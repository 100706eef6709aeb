"""The planner's sets on inputs, by loops over pairs of indices."""

import numpy as np

from infoflow_jax.probing.planned import plan_inputs
from tests.probing import cases


def test_pairmax_by_loops():
    T, D = 6, 2
    made, plan = cases.hard("pairmax 2 in 2 2", T)
    x_NTD = np.random.default_rng(3).uniform(-1, 1, (4, T, 3))
    got = plan_inputs(plan, made.target, made.weights, x_NTD)
    for n, x_TD in enumerate(x_NTD):
        partner, winner = {}, {}
        for i in range(D):
            score_ST = x_TD @ made.weights[f"A{i + 1}"] @ x_TD.T
            partner[i] = score_ST.argmax(0)
            winner[i] = int(score_ST.max(0).argmax())
            np.testing.assert_array_equal(got.keys[0, f"max_s{i + 1}"][n, :T], partner[i])
            assert got.keys[1, f"max_t{i + 1}"][n].tolist() == [-1] * T + [winner[i]]
        tokens = [{t} | {int(partner[i][t]) for i in range(D)} for t in range(T)]
        used = {t for i in range(D) for t in (winner[i], int(partner[i][winner[i]]))}
        known = set.union(*(tokens[winner[i]] for i in range(D)))
        for t in range(T):
            assert set(np.flatnonzero(got.known_NLPS[n, 0, t])) == tokens[t]
            assert set(np.flatnonzero(got.used_NLPS[n, 0, t])) == tokens[t]
        assert set(np.flatnonzero(got.used_NLPS[n, 1, T])) == used
        assert set(np.flatnonzero(got.known_NLPS[n, 1, T])) == known
        assert not got.known_NLPS[n, 0, T].any()
    assert (got.used_NLPS <= got.known_NLPS).all()
