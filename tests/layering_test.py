"""The arrows of docs/architecture.md, read from the imports. Any other arrow fails."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("configs", "infoflow_jax", "reach_jax", "sweep_jax")

# Room -> the rooms that it may import from, itself apart.
TOP = {
    "launch": {"sweep_jax"},  # the experiments are imported by name, from its registry
    "configs": set(),
    "sweep_jax": set(),
    "reach_jax": {"sweep_jax"},
    "infoflow_jax": {"sweep_jax", "reach_jax"},
}
REACH = {
    "ops": set(),
    "models": {"ops"},
    "hub": {"models"},
    "pretrain": {"models", "ops"},
    "cramming": {"models", "ops"},
    "geometry": {"models", "ops"},
    "enumeration": {"models", "ops"},
    "copying": {"models", "ops"},
    "bounds": set(),
    "analysis": set(),
    "experiments": {
        "ops",
        "hub",
        "models",
        "pretrain",
        "cramming",
        "geometry",
        "enumeration",
        "copying",
        "bounds",
        "analysis",
    },
}
INFOFLOW = {
    "calculus": set(),
    "networks": {"calculus"},
    "tasks": {"calculus"},
    "training": {"calculus", "networks", "tasks"},
    "probing": {"calculus", "networks", "tasks"},
    "figures": set(),
    "experiments": {"calculus", "networks", "tasks", "training", "probing", "figures"},
}
ROOMS = {"reach_jax": REACH, "infoflow_jax": INFOFLOW}


def files() -> list[Path]:
    found = [path for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    return sorted([*found, ROOT / "launch.py"])


def imports(path: Path) -> set[str]:
    """Dotted names that a file imports, at any depth; `from a import b` gives a and a.b."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def wrong_arrows(module: list[str], imported: set[str]) -> list[str]:
    """The imports of `module` (its dotted name, split) that no arrow allows."""
    wrong = []
    for name in sorted(imported):
        to = name.split(".")
        if to[0] not in (*PACKAGES, "launch"):
            continue
        if to[0] != module[0]:
            ok = to[0] in TOP[module[0]]
            if module[0] == "infoflow_jax" and to[0] == "reach_jax":
                ok = to[:2] == ["reach_jax", "ops"] or to == ["reach_jax"]
        elif module[0] in ROOMS and len(module) > 2 and len(to) > 1:
            ok = to[1] == module[1] or to[1] in ROOMS[module[0]][module[1]]
        else:
            ok = True
        if not ok:
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_arrows(path):
    module = list(path.relative_to(ROOT).with_suffix("").parts)
    assert wrong_arrows(module, imports(path)) == []


@pytest.mark.parametrize("package", ROOMS)
def test_every_room_has_an_arrow(package):
    rooms = {p.name for p in (ROOT / package).iterdir() if p.is_dir() and p.name[0] != "_"}
    assert rooms == set(ROOMS[package])


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        (["sweep_jax", "store"], "reach_jax.ops.rope"),
        (["reach_jax", "ops", "rope"], "reach_jax.models.config"),
        (["reach_jax", "bounds", "box"], "reach_jax.analysis.lines"),
        (["reach_jax", "models", "decoder"], "infoflow_jax"),
        (["infoflow_jax", "calculus", "sets"], "reach_jax.models.decoder"),
        (["infoflow_jax", "calculus", "sets"], "infoflow_jax.networks.transformer"),
        (["configs", "reach_quick"], "reach_jax.cramming.settings"),
    ],
)
def test_a_wrong_arrow_is_seen(module, imported):
    assert wrong_arrows(module, {imported}) == [imported]


def test_no_file_is_too_long_and_none_is_called_utils():
    for path in [*files(), *(ROOT / "tests").rglob("*.py")]:
        assert len(path.read_text().splitlines()) <= 400, path
        assert path.stem not in ("utils", "util", "helpers", "misc"), path
    assert len((ROOT / "launch.py").read_text().splitlines()) < 120
