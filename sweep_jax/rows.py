"""Some cells of a pool out of its stacked state, and back into it: how a chunk begins and ends.

On the device, in one program a shape. Which cells those are, `lanes.schedule` says.
"""

import functools
from typing import TypeVar

import jax

Tree = TypeVar("Tree")


@jax.jit
def take(tree_C: Tree, rows_B: jax.Array) -> Tree:
    """The cells in `rows_B`; an index past the end repeats the last."""
    taken: Tree = jax.tree.map(lambda x: x.at[rows_B].get(mode="clip"), tree_C)
    return taken


@functools.partial(jax.jit, donate_argnums=0)
def put(tree_C: Tree, tree_B: Tree, rows_B: jax.Array) -> Tree:
    """The pool with these cells replaced; what an idle lane computed is thrown away."""
    whole: Tree = jax.tree.map(lambda x, y: x.at[rows_B].set(y, mode="drop"), tree_C, tree_B)
    return whole
