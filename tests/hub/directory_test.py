"""A path, a GGUF file or a hub id to a directory; one conversion; errors that say what to do."""

import os
import threading

import huggingface_hub
import pytest
from huggingface_hub import errors

from reach_jax.hub import directory, gguf_file
from reach_jax.hub.tensors import Tensors
from tests.hub import tiny_gguf
from tests.hub.tiny_gguf import LLAMA_NORMS, renamed


@pytest.fixture
def gguf(tmp_path):
    tensors = renamed(tiny_gguf.layers(), LLAMA_NORMS)
    return tiny_gguf.write(tmp_path / "tiny.Q8.gguf", "llama", tiny_gguf.llama(), tensors)


@pytest.fixture
def conversions(monkeypatch):
    """The paths that were converted, in order."""
    done, convert = [], gguf_file.convert

    def counted(path, out):
        done.append(path)
        convert(path, out)

    monkeypatch.setattr(gguf_file, "convert", counted)
    return done


def locate(path, cache, offline=True):
    return directory.locate(str(path), cache, offline)


def test_a_directory_is_itself(tmp_path):
    assert locate(tmp_path, tmp_path / "cache") == tmp_path
    assert not (tmp_path / "cache").exists()


def test_a_gguf_file_is_converted_once(tmp_path, gguf, conversions):
    cache = tmp_path / "cache"
    first = locate(gguf, cache)
    assert first.parent == cache
    assert first.name.startswith("tiny.Q8-")
    assert len(Tensors(first).names()) == 20
    assert locate(gguf, cache) == first
    assert conversions == [gguf]
    assert [p.name for p in cache.iterdir() if p.is_dir() and p.name[0] != "."] == [first.name]


def test_a_changed_file_or_conversion_is_converted_again(tmp_path, gguf, conversions, monkeypatch):
    cache = tmp_path / "cache"
    first = locate(gguf, cache)
    status = gguf.stat()
    os.utime(gguf, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    second = locate(gguf, cache)
    monkeypatch.setattr(gguf_file, "CONVERSION", gguf_file.CONVERSION + 1)
    third = locate(gguf, cache)
    assert len({first, second, third}) == len(conversions) == 3


def test_a_conversion_that_fails_or_is_killed_leaves_nothing_that_counts(
    tmp_path, gguf, conversions
):
    cache, data = tmp_path / "cache", gguf.read_bytes()
    gguf.write_bytes(data[:-64])
    with pytest.raises(ValueError, match="truncated"):
        locate(gguf, cache)
    kept = [p for p in cache.iterdir() if p.is_dir() and p.name[0] != "."]
    assert [p for p in kept if p.suffix != ".partial"] == []
    gguf.write_bytes(data)
    target = locate(gguf, cache)
    partial = target.with_name(target.name + ".partial")
    target.rename(partial)  # as a kill just before the rename leaves it
    (partial / "rubbish").write_text("x")
    assert locate(gguf, cache) == target
    assert len(conversions) == 3
    assert not (target / "rubbish").exists()


def test_several_at_once_convert_once(tmp_path, gguf, conversions):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(locate(gguf, tmp_path / "cache")))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(found) == 6
    assert len(conversions) == 1
    assert [p for p in (tmp_path / "cache").iterdir() if p.is_dir() and p.name[0] != "."] == [
        found[0]
    ]


@pytest.mark.parametrize(
    "name", ["no/such/dir", "./org/name", "/nowhere", "name", "missing.gguf", "org/na me", "", "a/"]
)
def test_neither_a_path_nor_an_id(tmp_path, name, monkeypatch):
    monkeypatch.setattr(huggingface_hub, "snapshot_download", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"model = .*expected an? "):
        locate(name, tmp_path)


def test_a_file_that_is_no_gguf_is_refused(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match="expected a directory"):
        locate(tmp_path / "model.safetensors", tmp_path)


@pytest.mark.parametrize("offline", [True, False])
def test_a_hub_id_asks_the_hub_for_text_and_safetensors_only(tmp_path, monkeypatch, offline):
    asked = []

    def download(repo, allow_patterns, local_files_only):
        asked.append((repo, allow_patterns, local_files_only))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert locate("org/some-model.v2", tmp_path, offline) == tmp_path
    [(repo, patterns, local)] = asked
    assert (repo, local) == ("org/some-model.v2", offline)
    assert sorted(patterns) == [
        "*.index.json",
        "*.safetensors",
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


class Reset(Exception):
    """An error of a transport library, of no type known here."""


@pytest.mark.parametrize(
    ("kind", "offline", "message"),
    [
        (errors.GatedRepoError, False, "no permission. Accept its terms"),
        (errors.RepositoryNotFoundError, False, "no such model on the hub, or it is private"),
        (errors.LocalEntryNotFoundError, False, "no network, or HF_HUB_OFFLINE is set"),
        (errors.LocalEntryNotFoundError, True, "offline, by the switch"),
        (errors.HfHubHTTPError, False, "the hub cannot be read: HfHubHTTPError"),
        (ConnectionError, False, "the hub cannot be read: ConnectionError"),
        (Reset, False, "the hub cannot be read: Reset"),
    ],
)
def test_what_the_hub_answers_is_said_in_one_line(tmp_path, monkeypatch, kind, offline, message):
    def download(*_, **__):
        raise kind.__new__(kind)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    with pytest.raises(ValueError, match="model 'org/name': ") as error:
        locate("org/name", tmp_path, offline)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_real_library_offline_says_so_without_the_network(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match="offline, by the switch"):
        locate("org/name", tmp_path, offline=True)
