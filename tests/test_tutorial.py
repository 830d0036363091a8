"""The tutorial, run as it is printed but for the number of training steps."""

import re
import warnings
from pathlib import Path

import matplotlib
import pytest

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial.md"


def test_the_tutorial_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    blocks = re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(), re.DOTALL)
    code = "\n".join(blocks)
    assert code.count("STEPS = None") == 1 and code.count("[:600]") == 2
    code = code.replace("STEPS = None", "STEPS = 3").replace("[:600]", "[:150]")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The examples hold fewer")
        exec(compile(code, str(TUTORIAL), "exec"), {})
    printed = capsys.readouterr().out
    assert "150 images of 28x28x1, 10 classes" in printed
    assert re.search(r"^capsules 0\.\d+$", printed, re.MULTILINE)
    assert (tmp_path / "explanations.png").stat().st_size > 5000
    names = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    assert {"templates", "reconstructions"} <= names
    assert (tmp_path / "my-clusters" / "estimator.json").is_file()
