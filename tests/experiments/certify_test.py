"""The certify experiment on a made-up run of a tiny checkpoint, end to end through the launcher."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import launch
from configs import _base
from reach_jax.cramming.verify import greedy_decode
from reach_jax.hub import loader
from sweep_jax import backend
from sweep_jax.cells import Cell, dump_config, hash_name
from sweep_jax.store import Result, Store

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "hub" / "families" / "goldens" / "llama"


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A finished run: a true prompt, one that boasts, one that reached nothing, one failed."""
    root = tmp_path_factory.mktemp("other")
    config = _base.new_config("reachability")
    _base.add_model(config, str(GOLDEN), smoke=True)
    config.source.dtype = "float32"
    config.cramming = {"prefix": "begin"}
    (root / "config.json").write_text(dump_config(config))
    loaded = loader.load(GOLDEN, "float32")
    width = loaded.config.width
    store, names = Store(root), {}
    kinds = [("true", 3, 1, "ok"), ("boast", 4, 2, "censored"), ("none", 0, 1, "ok")]
    for number, (name, n, m, status) in enumerate([*kinds, ("broken", 2, 1, "failed")]):
        prompt = np.random.default_rng(number).normal(size=(m, width)).astype(np.float32)
        target = greedy_decode(loaded.config, loaded.params, prompt, 6, 12)[0].copy()
        if name == "boast":
            target[2] = (target[2] + 1) % loaded.config.vocab_size
        cell = {"prompt_length": m, "source": "text" if m == 1 else "random", "target": number}
        plain = {"experiment": "reachability", "cell": cell}
        names[name] = hash_name(plain)
        result = Result(status, {"threshold": n}, 0.0, 0.0)
        arrays = {"prompt": prompt, "target": target}
        store.write(Cell(names[name], plain, {}), result, {}, arrays)
    return root, names


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(backend, "configure", lambda precision, directory: None)

    def call(workdir, *words):
        config = f"--config={ROOT / 'configs' / 'certify.py'}:smoke"
        where = [f"--config.run.workdir={workdir}", f"--workdir={tmp_path / 'run'}"]
        code = launch.main(["launch.py", config, *where, *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_certificates_table_page_and_resume(run, tmp_path, other):
    root, names = other
    before = sorted((path, path.stat().st_mtime_ns) for path in root.rglob("*.json"))
    code, out, _ = run(root, "--mode=plan")
    assert code == 0
    assert "3 cells" in out  # the failed one has no prompt to certify
    code, out, _ = run(root)
    assert code == 0
    assert "3 of 3 prompts are certified; 2 decode to the whole length" in out
    records = [json.loads(p.read_text()) for p in (tmp_path / "run" / "cells").glob("*.json")]
    by_name = {record["config"]["cell"]["prompt"]: record["metrics"] for record in records}
    true, boast, none = (by_name[names[name]] for name in ("true", "boast", "none"))
    assert (true["claimed"], true["n"], true["confirmed"]) == (3, 3, True)
    assert (boast["claimed"], boast["n"], boast["confirmed"]) == (4, 2, False)
    assert (none["n"], none["source"]) == (0, "text")
    assert true["decodes_agree"] == true["decoded"] >= 4
    assert 0 < true["eps_cube_directed"] <= true["eps_cube_refuted"]
    for name in ("table.csv", "report.html", "figures/eps.svg", "figures/rounding.svg"):
        assert (tmp_path / "run" / name).stat().st_size > 200
    stamps = [p.stat().st_mtime_ns for p in sorted((tmp_path / "run" / "cells").glob("*"))]
    assert run(root)[0] == 0  # again: nothing is computed twice
    assert stamps == [p.stat().st_mtime_ns for p in sorted((tmp_path / "run" / "cells").glob("*"))]
    after = sorted((path, path.stat().st_mtime_ns) for path in root.rglob("*.json"))
    kept = [item for item in after if "models" not in item[0].parts]
    assert kept == before  # the other run is only read


def test_the_prompt_of_a_certificate_is_the_stored_one(run, tmp_path, other):
    """Its witnesses lie where the refuted eps says, seen from the other run's array."""
    root, names = other
    assert run(root)[0] == 0
    for path in (tmp_path / "run" / "cells").glob("*.json"):
        record = json.loads(path.read_text())
        if record["config"]["cell"]["prompt"] != names["true"]:
            continue
        mine = Store(tmp_path / "run").arrays(Cell(record["name"], record["config"], {}))
        there = json.loads((root / "cells" / f"{names['true']}.json").read_text())
        prompt = Store(root).arrays(Cell(names["true"], there["config"], {}))["prompt"]
        distance = float(jnp.abs(mine["witness_cube"] - prompt).max())
        np.testing.assert_allclose(2 * distance, record["metrics"]["eps_cube_refuted"], rtol=1e-5)


def test_what_cannot_be_certified_is_refused(run, tmp_path, other):
    code, _, err = run(tmp_path / "nowhere")
    assert code == 2
    assert err.startswith("error: config.run.workdir = ")
    assert len(err.splitlines()) == 1
    code, _, err = run(other[0], "--config.certificate.decodes=9")
    assert code == 2
    assert err.startswith("error: config.certificate.decodes = 9: expected an integer in [0, ")
    foreign = tmp_path / "foreign"
    (foreign / "cells").mkdir(parents=True)
    (foreign / "cells" / "aa.json").write_text('{"status": "ok"}')
    (foreign / "config.json").write_text('{"experiment": "inspect"}')
    code, _, err = run(foreign)
    assert code == 2
    assert "expected the workdir of a finished reachability run" in err


def test_a_run_that_gave_the_first_token_is_refused(run, tmp_path, other):
    """Its target's first token stands between prompt and answer; a certificate would not put it."""
    there = tmp_path / "given"
    (there / "cells").mkdir(parents=True)
    for path in (other[0] / "cells").glob("*.json"):
        (there / "cells" / path.name).write_bytes(path.read_bytes())
    config = json.loads((other[0] / "config.json").read_text())
    config["cramming"]["first_token"] = "given"
    (there / "config.json").write_text(json.dumps(config))
    code, _, err = run(there)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert "config.run.workdir = " in err
    assert "config.cramming.first_token = 'predicted'; this one says 'given'" in err
    assert not (tmp_path / "run").exists()
