"""A wheel carries all that a non-editable installation needs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PACKAGES = ("state", "streaming", "checkpoints")


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=root, check=True, capture_output=True, timeout=120)
    return next(folder.glob("*.whl"))


def test_the_wheel_has_every_module_and_data_file(root: Path, wheel: Path) -> None:
    wanted = {
        path.relative_to(root).as_posix()
        for package in PACKAGES
        for pattern in ("*.py", "schemas/*.json")
        for path in (root / package).rglob(pattern)
    }
    wanted |= {f"streaming/conf/{path.name}" for path in (root / "conf").glob("*.toml")}
    assert wanted <= set(zipfile.ZipFile(wheel).namelist())


def test_defaults_are_found_where_it_is_unpacked(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "import streaming.settings_loader as loader;"
        "print(loader.__file__, loader.load_settings(environment={}).controller_id)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout.split()
    assert answer == [str(tmp_path / "streaming" / "settings_loader.py"), "1000"]
