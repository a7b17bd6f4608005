"""A package with entry points, installed into a folder of its own as pip would do it."""

from __future__ import annotations

from pathlib import Path


def install_package(folder: Path, name: str, code: str, entry_points: str) -> None:
    """Write a module `name` and the metadata of its distribution; the folder must be on `sys.path`."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    (folder / f"{name}.py").write_text(code)
