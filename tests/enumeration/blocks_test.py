"""Blocks: the same bytes whatever was there before; damaged or foreign files are not believed."""

import signal

import jax
import numpy as np
import pytest

from reach_jax.enumeration import blocks, weights
from reach_jax.models.config import DecoderConfig
from sweep_jax.stop import Stop, Stopped
from tests.enumeration import cases

SPEC = cases.spec()  # 256 prompts
BLOCK = 96  # a multiple of the 8 devices that does not divide 256


def run(directory, stop=None, tell=lambda count: None, block=BLOCK, spec=SPEC):
    params = cases.params(spec.model)
    return blocks.run(spec, params, block, directory, stop or Stop(), tell)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run(tmp_path_factory.mktemp("whole"))


def same(one, other):
    return one.keys.tobytes() == other.keys.tobytes() and (
        one.margins.tobytes() == other.margins.tobytes()
    )


def test_all_prompts_are_there_in_order_from_all_devices(undisturbed, tmp_path):
    assert jax.device_count() == 8
    told = []
    found = run(tmp_path, tell=told.append)
    assert told == [96, 96, 64]
    assert found.keys.shape == found.margins.shape == (256,)
    assert same(found, undisturbed)
    whole = run(tmp_path / "other", block=10**6)
    np.testing.assert_array_equal(whole.keys, found.keys)
    np.testing.assert_allclose(whole.margins, found.margins, atol=1e-5)


def test_a_stop_keeps_what_is_done_and_a_second_run_ends_with_the_same_bytes(undisturbed, tmp_path):
    stop = Stop()

    def tell(count):
        stop.signum = signal.SIGTERM

    with pytest.raises(Stopped, match="block 1 of 3"):
        run(tmp_path, stop, tell)
    (first,) = tmp_path.glob("*.npz")
    before = first.stat().st_mtime_ns
    assert same(run(tmp_path), undisturbed)
    assert first.stat().st_mtime_ns == before  # read, not computed again


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_a_damaged_block_is_computed_again(undisturbed, tmp_path, damage, monkeypatch):
    run(tmp_path)
    path = tmp_path / f"{BLOCK}-{BLOCK}.npz"
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[len(data) // 3] ^= 1
    path.write_bytes({"cut": data[:-200], "flip": data, "empty": b""}[damage])
    warned = []
    monkeypatch.setattr(blocks.logging, "warning", lambda text, *rest: warned.append(text % rest))
    assert same(run(tmp_path), undisturbed)
    assert len(warned) == 1
    assert path.name in warned[0]


def test_blocks_of_another_size_are_not_read(undisturbed, tmp_path):
    run(tmp_path, block=64)
    (tmp_path / "64-0.npz").write_bytes(b"would warn if it were read")
    assert same(run(tmp_path), undisturbed)


def test_operations_are_counted_from_the_shapes():
    """One layer, by hand: 2 vectors, then 3 tokens, of which the last is not fed back."""
    spec = cases.spec(layers=1, length=3, bits=1)
    matrices = 2 * (2 * 4 + 2 * 2 * 2 + 4 * 2) + 2 * 3 * 2 * 5  # q, k and v, o; gate, up, down
    scores = 2 * 2 * (2 * 2) * 4  # q.k and weights times v, 2 heads of 2 channels, 4 slots
    assert spec.flops == 16 * (4 * (matrices + scores) + 3 * 2 * 2 * 4)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("length = 0", {"length": 0}),
        ("length = 33", {"length": 33}),
        ("at most 64", {"length": 65, "vocab_size": 2}),
        ("bits", {"bits": 7}),
    ],
)
def test_what_cannot_be_enumerated_is_refused(message, changes):
    with pytest.raises(ValueError, match=message):
        cases.spec(**changes)


def test_a_block_of_no_prompts_is_refused(tmp_path):
    with pytest.raises(ValueError, match="block = 0"):
        run(tmp_path, block=0)


def test_random_weights_are_scaled_kernels_and_unit_heads():
    config: DecoderConfig = SPEC.model
    plain = weights.draw(config, weights.RandomWeights(1.0, False), jax.random.key(0))
    drawn = weights.draw(config, weights.RandomWeights(3.0, True), jax.random.key(0))
    np.testing.assert_allclose(np.linalg.norm(drawn["head"], axis=1), 1.0, rtol=1e-6)
    one, three = plain["layers"], drawn["layers"]
    np.testing.assert_allclose(3 * one["attention"]["q"], three["attention"]["q"], rtol=1e-6)
    np.testing.assert_allclose(3 * one["down"], three["down"], rtol=1e-6)
    np.testing.assert_array_equal(plain["embedding"], drawn["embedding"])
    np.testing.assert_array_equal(three["mlp_norm"]["weight"], 1.0)
    with pytest.raises(ValueError, match="gain = 0"):
        weights.RandomWeights(0.0, True)
