"""The built wheel as a user gets it: installed into an empty environment from the newest of everything, and used."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
OF_OURS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "VIRTUAL_ENV", "PIP_CONSTRAINT")
"""What a shell that ran `make` has and a user's has not."""
VERSIONS = """
import importlib.metadata as m, json
print(json.dumps({d.metadata["Name"].lower(): d.version for d in m.distributions()}))
"""


def built(pattern: str) -> Path:
    [file] = DIST.glob(pattern)
    return file


def example() -> str:
    """The first one of the README, as it stands there."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert found
    return found.group(1)


@dataclass(frozen=True)
class Empty:
    """An environment that had nothing but pip, and now has the wheel with these extras."""

    directory: Path

    @classmethod
    def made(cls, directory: Path, extras: str) -> Empty:
        venv.create(directory, with_pip=True)
        made = cls(directory)
        made.run("-m", "pip", "install", "--quiet", f"{built('*.whl')}{extras}")
        return made

    def run(self, *arguments: str, program: str = "python", check: bool = True) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name not in OF_OURS}
        command = [str(self.directory / "bin" / program), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=900, check=False, env=environment, cwd=self.directory
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done

    def versions(self) -> dict[str, str]:
        return dict(json.loads(self.run("-c", VERSIONS).stdout))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Empty:
    return Empty.made(tmp_path_factory.mktemp("base") / "venv", "")


def runs_twice(empty: Empty, code: str, directory: Path) -> None:
    script = directory / "example.py"
    script.write_text(code.replace("/tmp/", f"{directory}/"))
    for _ in range(2):
        done = empty.run(str(script))
        assert done.stdout.splitlines()[-1] == "1000 rows", done.stdout + done.stderr


def test_with_paimon_the_first_example_of_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    empty = Empty.made(tmp_path / "venv", "[paimon]")

    runs_twice(empty, example(), tmp_path)

    assert "pyiceberg" not in empty.versions()
    assert list((tmp_path / "lake" / "sales.db" / "orders" / "snapshot").glob("snapshot-*"))


def test_with_iceberg_it_runs_on_the_newest_pyarrow_and_fsspec(tmp_path: Path) -> None:
    empty = Empty.made(tmp_path / "venv", "[iceberg]")
    ours = '"table": "sales.orders"'
    assert ours in example()

    runs_twice(empty, example().replace(ours, f'{ours}, "tableFormat": "iceberg"'), tmp_path)

    versions = empty.versions()
    assert "pypaimon" not in versions
    # Past the bounds that pypaimon has, and nothing of ours holds them back.
    assert int(versions["pyarrow"].partition(".")[0]) >= 20
    assert int(versions["fsspec"].partition(".")[0]) >= 2026
    assert empty.run("-m", "pip", "list", "--outdated", "--format=json", "--quiet").stdout.count('"pyarrow"') == 0
    history = ["history", "--warehouse", str(tmp_path / "lake"), "--table", "sales.orders", "--json"]
    shown = json.loads(empty.run(*history, "--option", "tableFormat=iceberg", program="pwc").stdout)
    assert shown, "no snapshot"


def test_the_base_has_neither_library_and_names_the_extra(base: Empty) -> None:
    versions = base.versions()
    assert not {"pypaimon", "pyiceberg", "s3fs", "gcsfs", "adlfs"} & versions.keys()
    assert base.run("--version", program="pwc").stdout.split()[-1] == versions["paimon-sink"]
    assert "snapshotProperty" in base.run("options", program="pwc").stdout

    for more, extra in (
        (["--option", "tableFormat=paimon"], "paimon"),
        (["--option", "tableFormat=iceberg"], "iceberg"),
    ):
        done = base.run("verify", "--warehouse", "lake", "--table", "a.b", *more, program="pwc", check=False)
        assert done.returncode != 0
        assert f"pip install 'paimon-sink[{extra}]'" in " ".join(done.stderr.split())
        assert "Traceback" not in done.stderr


def test_a_job_on_the_base_fails_before_its_first_row_and_names_the_extra(base: Empty, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(example().replace("/tmp/", f"{tmp_path}/"))

    done = base.run(str(script), check=False)

    assert done.returncode == 1
    assert "pip install 'paimon-sink[paimon]' on the driver and on every executor" in done.stderr
    assert not (tmp_path / "lake").exists()


def test_the_wheel_has_what_is_needed_and_nothing_else() -> None:
    with zipfile.ZipFile(built("*.whl")) as wheel:
        names = wheel.namelist()
        metadata = wheel.read(next(name for name in names if name.endswith("/METADATA"))).decode()

    assert "paimon_sink/py.typed" in names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"paimon_sink"}
    assert "Description-Content-Type: text/markdown" in metadata
    assert "## Install" in metadata
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "paimon_sink").rglob("*") if path.is_file()}
    assert {name for name in sources if "__pycache__" not in name} == {n for n in names if ".dist-info/" not in n}


def test_the_source_archive_builds_the_same_wheel() -> None:
    """``python -m build`` made the wheel out of the archive, so it is enough that the archive has no more than it."""
    with tarfile.open(built("*.tar.gz")) as archive:
        tops = {"/".join(name.split("/")[1:]).partition("/")[0] for name in archive.getnames()}

    assert tops - {""} == {
        "paimon_sink",
        "LICENSE",
        "CHANGELOG.md",
        "README.md",
        "pyproject.toml",
        "PKG-INFO",
        ".gitignore",
    }
