"""The notebook of examples/ is executed as it stands, cell by cell, on Spark Connect."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

_read: Any = nbformat.read
NOTEBOOK = Path(__file__).parents[2] / "examples" / "connect.ipynb"


def test_every_cell_runs_and_says_what_it_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWC_DIRECTORY", str(tmp_path))
    # As in a shell where the environment is activated: the server takes the python3 on PATH.
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = _read(NOTEBOOK, as_version=4)

    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()

    shown = ["".join(_texts(cell)) for cell in notebook.cells if cell.cell_type == "code"]
    assert shown[1].strip() == "100"
    assert "2026-11-10" in shown[2]
    # Our sentence, and nothing of Spark's before it.
    assert shown[3].startswith("OptionError - ")
    assert "targetFilesize" in shown[3] or "targetFileSize" in shown[3]


def test_it_is_kept_without_outputs() -> None:
    notebook = _read(NOTEBOOK, as_version=4)

    assert [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs] == []


def _texts(cell: nbformat.NotebookNode) -> list[str]:
    return [
        output.text if output.output_type == "stream" else output.data.get("text/plain", "")
        for output in cell.outputs
        if output.output_type in ("stream", "execute_result") and output.get("name") != "stderr"
    ]
