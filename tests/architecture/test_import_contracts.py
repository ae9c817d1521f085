"""The import contracts of pyproject.toml bite: one bad import for each arrow, in a copy of the package."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = Path(sys.executable).with_name("lint-imports")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def target(module: str) -> str:
    """Return something that stands inside a package, or the module itself."""
    package = ROOT / module.replace(".", "/")
    if not package.is_dir():
        return module
    return f"{module}.{min(path.stem for path in package.glob('*.py') if path.stem != '__init__')}"


def layer_canaries() -> list[tuple[str, str]]:
    """Return every import that climbs: from each layer to each above it, and between neighbours."""
    layers = next(contract["layers"] for contract in CONTRACTS if contract["type"] == "layers")
    rows = [[name.strip() for name in layer.replace("|", ":").split(":")] for layer in layers]
    climbs = [(low, high) for above, below in combinations(rows, 2) for low in below for high in above]
    apart = [
        (one, other)
        for layer, row in zip(layers, rows, strict=True)
        if "|" in layer
        for one in row
        for other in row
    ]
    return [*climbs, *((one, other) for one, other in apart if one != other)]


def forbidden_canaries(contract: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Return every import that a contract forbids."""
    return [
        (source, module) for source in contract["source_modules"] for module in contract["forbidden_modules"]
    ]


CANARIES = {
    contract["name"]: layer_canaries() if contract["type"] == "layers" else forbidden_canaries(contract)
    for contract in CONTRACTS
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package in which imports may be broken."""
    directory = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "spl", directory / "spl", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", directory)
    return directory


def lint(copy: Path) -> str:
    done = subprocess.run(
        [LINT, "--no-cache", "--no-logo"], cwd=copy, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_the_package_as_it_is_keeps_every_contract(copy: Path) -> None:
    report = lint(copy)
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in report


@pytest.mark.parametrize("name", CANARIES)
def test_a_bad_import_breaks_the_contract(copy: Path, name: str) -> None:
    by_source: dict[str, list[str]] = {}
    for source, forbidden in CANARIES[name]:
        by_source.setdefault(source, []).append(target(forbidden))
    undone: dict[Path, str | None] = {}
    try:
        for source, imports in by_source.items():
            place = copy / source.replace(".", "/")
            file = place / "canary.py" if place.is_dir() else place.with_suffix(".py")
            undone[file] = file.read_text() if file.exists() else None
            lines = "".join(f"    import {module}\n" for module in imports)
            file.write_text((undone[file] or "") + "\n\ndef canary():\n" + lines)
        report = lint(copy)
    finally:
        for file, text in undone.items():
            file.unlink() if text is None else file.write_text(text)
    assert f"{name} BROKEN" in report
    missed = [
        (source, forbidden)
        for source, forbidden in CANARIES[name]
        if f"{source} is not allowed to import {forbidden}" not in report
    ]
    assert missed == []
