"""Networks whose dependence is known, shared by the tests of this folder."""

import dataclasses

import numpy as np

from infoflow_jax.calculus.architecture import Rules
from infoflow_jax.calculus.measures import measure
from infoflow_jax.calculus.schedule import best
from infoflow_jax.calculus.setting import Setting
from infoflow_jax.networks import constructions
from infoflow_jax.networks.config import NetworkConfig
from infoflow_jax.networks.construction import zeros

HARD = 1e9  # beta at which one key takes all attention, but for ties


def hard(text, T):
    """A compiled plan with hard attention, and the plan."""
    made = constructions.compiled(text, T, 1e-3, 0)  # so fine that argmaxima are the true ones
    made = dataclasses.replace(made, config=dataclasses.replace(made.config, beta=HARD))
    setting = Setting(measure(made.target), T, made.config.d, False, Rules())
    return made, best(setting, made.config.heads)


def one_head(beta):
    """c0 averages tokens of one number, weighted by softmax(beta x); set by hand."""
    config = NetworkConfig(1, 2, (1,), 1, ((),), encoder="none", beta=beta, dtype="float64")
    params = zeros(config)
    params["c0"][1] = 1.0
    layer = params["layer_0"]
    layer["query"][1, 0, 0] = layer["key"][0, 0, 0] = 1.0
    layer["value"][0, 0, 0] = layer["output"][0, 0, 0] = 1.0
    return config, params


def softmax(scores):
    weight = np.exp(scores - scores.max())
    return weight / weight.sum()
