"""Cells: the same config has the same name, and nothing is taken that the config does not have."""

import hashlib
import json

import jax
import pytest
from ml_collections import ConfigDict, config_dict

from configs import reach_quick
from sweep_jax import cells

EXCLUDED = ("execution",)


def make_config() -> ConfigDict:
    config = ConfigDict()
    config.seed = 0
    config.train = ConfigDict({"rate": 0.1, "steps": 5, "lens": (1, 2), "tied": True})
    config.train.warmup = config_dict.placeholder(int)
    config.execution = ConfigDict({"lanes": 4})
    return config.lock()


def expand_with(*axes):
    def sweep(add, config):
        for point in axes:
            add(point)

    return cells.expand(make_config(), sweep, EXCLUDED)


def test_names_depend_on_results_only():
    (base,) = cells.expand(make_config(), None, EXCLUDED)
    assert base.axes == {}
    assert "execution" not in base.config
    other_execution = make_config()
    other_execution.execution.lanes = 8
    other_rate = make_config()
    other_rate.train.rate = 0.2
    assert cells.expand(other_execution, None, EXCLUDED)[0].name == base.name
    assert cells.expand(other_rate, None, EXCLUDED)[0].name != base.name
    # Results of last year are found by this name: it may not change with the code.
    text = '{"seed":0,"train":{"lens":[1,2],"rate":0.1,"steps":5,"tied":true,"warmup":null}}'
    assert base.name == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_name_is_the_hash_of_the_stored_form():
    (cell,) = cells.expand(make_config(), None, EXCLUDED)
    assert cells.hash_name(json.loads(json.dumps(cell.config))) == cell.name


def test_equal_numbers_are_one_cell():
    (as_int,) = expand_with({"train.rate": 1})
    (as_float,) = expand_with({"train.rate": 1.0})
    assert as_int == as_float
    assert isinstance(as_int.config["train"]["rate"], float)


def test_fold_is_a_valid_key_fold():
    points = [{"seed": seed} for seed in range(50)]
    folds = [cell.fold for cell in expand_with(*points)]
    assert len(set(folds)) == 50
    assert all(0 <= fold < 2**31 for fold in folds)
    jax.random.fold_in(jax.random.key(0), max(folds))


def test_order_is_kept_and_the_base_is_not_changed():
    config = make_config()
    before = config.to_json()

    def sweep(add, config):
        for steps in (9, 3, 7):
            add({"train.steps": steps, "train.lens": [steps]})

    expanded = cells.expand(config, sweep, EXCLUDED)
    assert [cell.config["train"]["steps"] for cell in expanded] == [9, 3, 7]
    assert expanded[0].config["train"]["lens"] == (9,)
    assert config.to_json() == before
    assert config.is_locked


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"train.rates": 1.0}, r"train\.rates = 1\.0: .*'rates' is none of"),
        ({"trains.rate": 1.0}, r"trains\.rate"),
        ({"train": 1.0}, "train = 1.0: expected a field, not a section"),
        ({"train.rate.x": 1.0}, r"train\.rate\.x"),
        ({"train.rate": "1"}, r"train\.rate = '1': expected float"),
        ({"train.rate": float("nan")}, r"train\.rate = nan: expected a finite"),
        ({"train.steps": 1.0}, r"train\.steps = 1\.0: expected int"),
        ({"train.steps": True}, r"train\.steps = True: expected int"),
        ({"train.steps": None}, r"train\.steps = None: expected int"),
        ({"train.tied": 1}, r"train\.tied = 1: expected bool"),
        ({"train.lens": 8}, r"train\.lens = 8: expected tuple"),
        ({"train.lens": (8, 1.5)}, r"train\.lens\[1\] = 1\.5: expected int"),
        ({"train.warmup": 1.5}, r"train\.warmup = 1\.5: expected int"),
        ({"execution.lanes": 8}, r"execution\.lanes = 8: .*not execution"),
    ],
)
def test_bad_axes_are_named(axes, message):
    with pytest.raises(ValueError, match=message):
        expand_with(axes)


def test_placeholder_takes_none_and_its_type():
    expanded = expand_with({"train.warmup": None}, {"train.warmup": 3})
    assert [cell.config["train"]["warmup"] for cell in expanded] == [None, 3]


def test_equal_cells_and_no_cells_are_refused():
    with pytest.raises(ValueError, match="differ from each other"):
        expand_with({"train.steps": 1}, {"train.steps": 1})
    with pytest.raises(ValueError, match="at least one cell"):
        expand_with()
    with pytest.raises(ValueError, match=r"config\.executions = None"):
        cells.expand(make_config(), None, ("executions",))


def test_what_json_would_lose_is_refused():
    config = make_config()
    with config.unlocked():
        config.train.names = ["a"]
    with pytest.raises(ValueError, match=r"config\.train\.names"):
        cells.expand(config, None, EXCLUDED)


def test_the_quick_config_expands():
    config = reach_quick.get_config()
    expanded = cells.expand(config, reach_quick.sweep, ("axes", "execution", "support"))
    axes = config.axes
    assert len(expanded) == len(axes.prompt_lengths) * len(axes.sources) * axes.targets


@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_shards_partition(count):
    items = list(range(10))
    parts = [cells.shard(items, f"{i}/{count}") for i in range(count)]
    assert sorted(item for part in parts for item in part) == items
    assert parts[0] == items[0::count]


@pytest.mark.parametrize("spec", ["3/2", "2/2", "a", "-1/2", "1", "0/0", "", "0/2/3", "1.0/2"])
def test_bad_shards_are_named(spec):
    with pytest.raises(ValueError, match=f"--shard = '{spec}'"):
        cells.shard([1, 2], spec)


def test_dumped_config_loads_equal(tmp_path):
    config = reach_quick.get_config("smoke")
    path = tmp_path / "config.json"
    path.write_text(cells.dump_config(config))
    loaded = cells.load_config(path)
    assert loaded == config
    assert loaded.is_locked
    assert isinstance(loaded.axes.prompt_lengths, tuple)
