"""The Dockerfile is held to what can be checked without a Docker daemon."""

from __future__ import annotations

import fnmatch
import json
import re
import tomllib
from pathlib import Path

import pytest

from streaming.cli import app
from streaming.errors import ConfigurationError
from streaming.front.addresses import check_announced_host
from streaming.front.controller_role import RolePhase
from streaming.setting_checks import gateway_ports
from streaming.settings_loader import NOT_SETTINGS, load_settings
from tests.unit.house.commands import commands_of

Instruction = tuple[str, str]


@pytest.fixture(scope="module")
def instructions(root: Path) -> list[Instruction]:
    """Each instruction as (name, rest), continued lines joined, comments left out."""
    lines = (root / "Dockerfile").read_text("utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", "", text)
    return [(n, rest) for n, _, rest in (line.partition(" ") for line in joined.splitlines()) if n]


def last(instructions: list[Instruction], name: str) -> str:
    return [rest for found, rest in instructions if found == name][-1]


def is_ignored(path: str, patterns: list[str]) -> bool:
    """Docker's rule: the last pattern that matches decides, `!` takes a path in again."""
    ignored = False
    for pattern in patterns:
        if fnmatch.fnmatch(path, pattern.removeprefix("!")):
            ignored = not pattern.startswith("!")
    return ignored


def test_every_copied_path_exists_and_reaches_the_build(
    root: Path, instructions: list[Instruction]
) -> None:
    lines = (root / ".dockerignore").read_text("utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    copied = [rest.split() for name, rest in instructions if name == "COPY"]
    sources = [path for words in copied if not words[0].startswith("--") for path in words[:-1]]
    assert {"pyproject.toml", "conf", "state", "streaming", "checkpoints"} <= set(sources)
    for path in sources:
        assert (root / path).exists(), path
        assert not is_ignored(path, patterns), path


def test_all_packages_of_the_wheel_are_copied(root: Path, instructions: list[Instruction]) -> None:
    pyproject = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    copied = {rest.split()[0] for name, rest in instructions if name == "COPY"}
    assert set(pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) <= copied


def test_the_process_is_not_root(instructions: list[Instruction]) -> None:
    user = last(instructions, "USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user), "a name says nothing to runAsNonRoot"
    uid, gid = user.split(":")
    made = [rest for name, rest in instructions if name == "RUN" and "useradd" in rest]
    assert made
    assert re.search(rf"groupadd .*--gid {gid} helmstream\b", made[0])
    assert re.search(rf"useradd .*--uid {uid} --gid helmstream\b", made[0])
    after_user = [name for name, _ in instructions][[n for n, _ in instructions].index("USER") :]
    assert "RUN" not in after_user


def test_the_entry_point_is_our_command(root: Path, instructions: list[Instruction]) -> None:
    pyproject = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    entry = json.loads(last(instructions, "ENTRYPOINT"))
    assert entry[-1] in pyproject["project"]["scripts"]
    assert isinstance(json.loads(last(instructions, "CMD")), list)


def test_the_health_check_is_a_command_we_have(instructions: list[Instruction]) -> None:
    check = last(instructions, "HEALTHCHECK")
    program, command, option, role = json.loads(check[check.index("CMD ") + 4 :])
    assert program == "helmstream"
    options = commands_of(app)[command].params
    assert option in {name for one in options for name in one.opts}
    assert role == RolePhase.ACTIVE


def test_base_images_are_one_and_name_their_release(instructions: list[Instruction]) -> None:
    images = [rest.split()[0] for name, rest in instructions if name == "FROM"]
    assert len(set(images)) == 1  # the venv is moved from one to the other
    assert re.fullmatch(r"python:3\.\d+-slim-[a-z]+", images[0])


def test_packages_are_installed_frugally(instructions: list[Instruction]) -> None:
    for _, rest in (line for line in instructions if line[0] == "RUN"):
        if "apt-get install" in rest:
            assert "apt-get update &&" in rest
            assert "--no-install-recommends" in rest
            assert "rm -rf /var/lib/apt/lists/*" in rest
        if "pip install" in rest:
            assert "--no-cache-dir" in rest
        if "pip install" in rest and "--require-hashes" not in rest:
            assert "--no-index --no-deps" in rest, "something that no lock names might be installed"
    for lock in ("requirements-run.lock", "requirements-build.lock"):
        assert any(f"--no-deps --require-hashes -r {lock}" in rest for _, rest in instructions)


def test_the_settings_of_the_image_are_settings(instructions: list[Instruction]) -> None:
    words = last(instructions, "ENV").split()
    environment = dict(word.split("=", 1) for word in words)
    assert NOT_SETTINGS & set(environment)
    settings = load_settings(environment=environment)
    assert str(settings.data_dir) == last(instructions, "VOLUME")


def test_starts_are_prepared_where_no_volume_hides_it(instructions: list[Instruction]) -> None:
    environment = dict(word.split("=", 1) for word in last(instructions, "ENV").split())
    cache = Path(environment["HELMSTREAM_CACHE"])
    assert not cache.is_relative_to(last(instructions, "VOLUME"))
    names = [name for name, _ in instructions]
    prepared = instructions.index(
        ("RUN", f"helmstream prepare && chown --recursive helmstream:helmstream {cache}")
    )
    assert len(names) - 1 - names[::-1].index("ENV") < prepared < names.index("USER")


def test_the_gateways_ports_are_exposed(instructions: list[Instruction]) -> None:
    settings = load_settings(environment={})
    exposed = [int(port) for port in last(instructions, "EXPOSE").split()]
    assert exposed == gateway_ports(settings, len(exposed))


def test_what_the_image_binds_is_not_announced_by_itself(instructions: list[Instruction]) -> None:
    environment = dict(word.split("=", 1) for word in last(instructions, "ENV").split())
    with pytest.raises(ConfigurationError, match=r"set gateway\.advertised\.host"):
        check_announced_host(load_settings(environment=environment))
