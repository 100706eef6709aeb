"""The two pretrained models of `make models` against what transformers says of the same weights.

The references were made in float32 from weights dequantised independently of this project. Kept of
them: logits at the last two positions for every 97th token, the text's own and the 50 likeliest;
all else whole. `make test-models` fetches the models first; without them these tests skip.
"""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.hub import loader
from reach_jax.hub.tokenizer import Tokenizer
from reach_jax.ops import readout
from tests.hub.families import compare

ROOT = Path(__file__).parents[2]
MEASURE = """
import re, sys, time
from pathlib import Path
from reach_jax.hub import loader
import jax
jax.device_put(0.0)
status = Path("/proc/self/status")
peak = lambda: 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text()).group(1))
before, began = peak(), time.perf_counter()
loader.load(Path(sys.argv[1]), "float32")
print(time.perf_counter() - began, peak() - before)
"""
pytestmark = pytest.mark.models


@pytest.fixture(scope="module", params=["smollm2-135m", "gemma3-270m"])
def case(request):
    directory = ROOT / "models" / request.param
    if not directory.is_dir():
        pytest.skip(f"models/{request.param} is not there: `make test-models` fetches it")
    want = dict(np.load(Path(__file__).with_name("references") / f"{request.param}.npz"))
    return directory, loader.load(directory, "float32"), want


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to measure with")
def test_a_load_is_lean_and_quick(case):
    """In a process of its own, as a high-water mark never falls."""
    directory, loaded, _ = case
    out = subprocess.run(
        [sys.executable, "-c", MEASURE, str(directory)], cwd=ROOT, capture_output=True, check=True
    )
    seconds, grown = map(float, out.stdout.split())
    peak = grown / loaded.report.bytes
    print(f"{directory.name}: loaded in {seconds:.1f} s, peak {peak:.2f} times its parameters")
    assert peak <= 1.3


def test_tokenizer(case):
    directory, _, want = case
    tokenizer = Tokenizer(directory)
    ids = tokenizer.encode(str(want["text"]), begin=True)
    assert ids == want["input_ids"].tolist()
    assert tokenizer.decode(tokenizer.encode(str(want["text"]), begin=False)) == str(want["text"])


def test_logits(case):
    _, loaded, want = case
    got_TV = compare.logits(loaded, want["input_ids"])
    np.testing.assert_array_equal(got_TV.argmax(axis=1), want["argmax_ids"])
    worst = np.abs(got_TV[-2:][:, want["vocabulary"]] - want["logits"]).max()
    print(f"largest difference of a logit {worst:.1e}")
    assert worst <= 2e-3


def test_soft_prompt(case):
    """States, logits, loss and its gradient with four soft vectors before the text."""
    _, loaded, want = case
    tokens_T = jnp.asarray(want["input_ids"])
    embedded_TD, head_VD = compare.call(loaded, "embed", tokens_T), compare.call(loaded, "head")

    def nll(soft_MD):
        hidden_TD = compare.plain(loaded, jnp.concatenate([soft_MD, embedded_TD]))
        scores = readout.score(hidden_TD[len(soft_MD) - 1 : -1], head_VD, tokens_T)
        return jnp.mean(scores.nll), hidden_TD

    grad_fn = jax.jit(jax.value_and_grad(nll, has_aux=True))
    (loss, hidden_TD), grad_MD = grad_fn(jnp.asarray(want["soft"]))
    np.testing.assert_allclose(hidden_TD, want["hidden_last"], atol=2e-3, rtol=1e-3)
    logits_TV = readout.logits(hidden_TD[-2:], head_VD)
    np.testing.assert_allclose(
        logits_TV[:, want["vocabulary"]], want["soft_logits"], atol=2e-3, rtol=0
    )
    ours, theirs = np.asarray(grad_MD).ravel(), want["grad_soft"].ravel()
    cosine = ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs)
    print(
        f"nll off by {abs(loss / want['soft_nll'] - 1):.1e}, gradient's 1 - cosine {1 - cosine:.1e}"
    )
    assert abs(loss / want["soft_nll"] - 1) <= 1e-4
    assert cosine > 0.9999
