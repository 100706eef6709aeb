"""The analysis from the command line: what it prints, writes and refuses."""

import json
from pathlib import Path

import pytest

import launch
from configs import infoflow_analyze as config_file
from infoflow_jax.calculus import targets
from sweep_jax import backend

ROOT = Path(__file__).parents[2]
CONFIG = f"--config={ROOT / 'configs' / 'infoflow_analyze.py'}"


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(backend, "configure", lambda precision, directory: None)

    def call(*words, config=CONFIG):
        code = launch.main(["launch.py", config, f"--workdir={tmp_path / 'run'}", *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def stored(tmp_path):
    (path,) = (tmp_path / "run" / "cells").glob("*.json")
    return json.loads(path.read_text())["metrics"]


def test_too_few_heads_in_the_first_layer(run, tmp_path):
    code, out, _ = run("--config.target=pairmax", "--config.D=3", "--config.heads=2,3")
    assert code == 0
    assert "INFEASIBLE (by the published rules); parameters ~ eps^-1.667 by global mode" in out
    assert "order 2, dimension 3, depth 2, 816 comparisons at T = 16" in out
    assert "the heads of tokens that could find it, in layers 1 to 1, are all taken" in out
    assert "fewest layers: (3, 3), E ≥ 9" in out
    found = stored(tmp_path)
    assert [h for h, *_ in found["frontier"]] == [[3, 3], [2, 2, 1], [1, 1, 1, 1]]
    assert [known for *_, known in found["frontier"]] == [True, False, False]
    assert sum(line.endswith("prediction") for line in out.splitlines()) == 2
    assert [e for _, e, _ in found["growth"]] == pytest.approx(
        [T / 6 - 1 for T in (16, 64, 256, 1024)]
    )
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.count("data:image/svg") == 2
    assert "are all taken" in page
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "run" / "cells").iterdir()}
    assert run("--config.target=pairmax", "--config.D=3", "--config.heads=2,3")[0] == 0
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "run" / "cells").iterdir()}


def test_a_target_given_as_text_and_its_smallest_architecture(run, tmp_path):
    text = 'output = minimum("t", minimum("s", dot(x("s"), x("t"))))'
    code, out, _ = run(f"--config.tree={text}", "--config.heads=()")
    assert code == 0
    assert "heads (1, 1)" in out
    assert ": FEASIBLE (by the published rules)" in out
    found = stored(tmp_path)
    assert found["known"][0] == [[int(i == j < 6) for j in range(7)] for i in range(7)]
    assert sum(found["known"][2][6]) in (1, 2)  # c0 knows the pair, which may be one token
    assert found["readers"] == [6]


def test_rules_beyond_the_published_ones_are_marked(run, tmp_path):
    words = ["--config.target=retrieval", "--config.heads=1,1"]
    _, out, _ = run(*words)
    assert "note: with shared hosts it is feasible, by the rules of sets (prediction)" in out
    _, out, _ = run(*words, "--config.rules.shared_hosts=True")
    assert "FEASIBLE (a prediction of this project, not published)" in out


def test_every_shipped_target_and_the_page_in_docs(run, tmp_path):
    """Copy runs/infoflow_analyze-all/docs to docs/results after a change."""
    assert set(config_file.ALL) == set(targets.SHIPPED)
    code, out, _ = run(config=f"{CONFIG}:all")
    assert code == 0
    assert "none in the budget" in out
    written = (tmp_path / "run" / "docs" / "infoflow_targets.md").read_text()
    assert written == (ROOT / "docs" / "results" / "infoflow_targets.md").read_text()
    assert written.count("\n| ") == 2 + len(targets.SHIPPED) + 3


def test_a_lower_bound_is_not_printed_as_the_cost(run):
    _, out, _ = run("--config.target=pairmin", "--config.heads=1")
    assert "INFEASIBLE (by the published rules); parameters ~ eps^-1.667 by global mode" in out
    assert "; Theorem 1 (stated for the least inner product) says nothing at this T" in out
    _, out, _ = run("--config.target=pairmin", "--config.heads=1", "--config.tokens=256")
    assert "; at least eps^-8.769 by Theorem 1" in out


def test_a_plan_starts_nothing(run, tmp_path):
    code, out, _ = run("--mode=plan", config=f"{CONFIG}:all")
    assert code == 0
    assert "14 cells" in out
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("tree=output = linear('a', x('t'))", "config.tree: output: index 't' is unbound"),
        (
            "tree=p = argmax('t', linear('a', x('t')), (p,)); output = x(p)",
            "config.tree: p: is cyclic: p needs p",
        ),
        ("tree=output = sort(x(1))", "config.tree = 'sort': expected a word of"),
        ("target=nope", "config.target = 'nope': expected one of"),
        ("D=0", "config.D = 0"),
        ("tokens=1", "config.tokens = 1: expected an integer >= 2, the target's order"),
        ("lengths=16,1", "config.lengths = (16, 1)"),
        ("layers=3", "config.heads = (2, 3): expected one number for each of the 3 layers"),
        ("layers=0", "config.layers = 0: expected an integer >= 1"),
        ("layers=-1", "config.layers = -1: expected an integer >= 1"),
        ("heads=5,5", "config.width = 24: expected a multiple of its 5 heads"),
        ("heads=0,1", "config.heads = (0, 1)"),
        ("eps=1", "config.eps = 1.0: expected a number in (0, 1)"),
        ("eps=0", "config.eps = 0.0"),
        ("eps=1e-310", "config.eps = 1e-310: expected a number in (0, 1), 1e-300 at least"),
        ("tree=output = each(x(1), 2, 3)", "config.tree: each = 'each(x(1), 2, 3)'"),
        ("baseline=0", "config.baseline = 0.0"),
        ("budget.heads=0", "config.budget.heads = 0"),
        ("drawing.tokens=11", "config.drawing.tokens = 11"),
        ("seed=-1", "config.seed = -1: expected an integer in [0, 2^31)"),
        ("D=65", "config.D = 65: expected an integer in 1..64"),
        ("tokens=99999999999", "config.tokens = 99999999999: expected an integer in 1.."),
        ("lengths=16,99999999999", "config.tokens = 99999999999: expected an integer in 1.."),
        ("d=100000000000", "config.d = 100000000000: expected an integer in 1.."),
        ("heads=100000000000,1", "config.heads = (100000000000, 1): expected 1 to 64 layers"),
        ("tree=output = part(x(1), 9)", "config.part = 9: expected at most d = 4"),
        (
            "tree=output = minimum('t', linear('a', x('t')) + bilinear(x('t'), 'a', x('t')))",
            "config.weight a = (4, 4): expected shape (4,)",
        ),
        ("tree=output = " + "-" * 3000 + "x(1)", "config.tree = 'output = --"),
        ("tree=output = " + "x(1) + " * 1500 + "x(1)", "config.tree = 'output = x(1) + "),
        ("tree=output = " + "x(1) + " * 9000 + "x(1)", "config.tree = 'output = x(1) + "),
    ],
)
def test_bad_input_is_one_line_before_any_work(run, tmp_path, word, message):
    code, _, err = run(f"--config.{word}")
    assert code == 2
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_layers_without_heads_are_not_dropped(run, tmp_path):
    code, _, err = run("--config.heads=()", "--config.layers=3")
    assert code == 2
    assert err.startswith("error: config.layers = 3: expected None when heads are to be found")
    assert not (tmp_path / "run").exists()


def test_another_width_than_the_given_one_is_said(run, tmp_path):
    found = ("--config.target=retrieval", "--config.heads=()")
    _, out, _ = run(*found, "--config.width=4")
    assert "heads (3), E = 6" in out
    assert "note: E = 6 and not 4: a multiple of the heads" in out
    _, out, _ = run(*found, "--config.width=12")
    assert "heads (3), E = 12" in out
    assert "and not" not in out


def test_what_cannot_be_drawn_says_so(run, tmp_path):
    code, _, _ = run("--config.target=kth", "--config.D=7", "--config.heads=()",
                     "--config.budget.layers=7")  # fmt: skip
    assert code == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "The flow is not drawn: the target needs T &gt;= 7, not 6." in page
