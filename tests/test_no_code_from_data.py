"""Nothing we read can run code: no such call in the source."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import scae

SOURCE = Path(scae.__file__).parent
MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
CALLS = {"os.system", "os.popen", "torch.jit.load", "torch.hub.load", "joblib.load"}
NEEDED = {"torch.load": ("weights_only", True), "np.load": ("allow_pickle", False)}
NEEDED |= {"numpy.load": ("allow_pickle", False)}
SCRIPT = re.compile(
    r"\beval\s*\(|new\s+Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write"
    r"|setTimeout\(\s*['\"]|https?://(?!www\.w3\.org)"
)


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def offences(text: str) -> Iterator[str]:
    """Every way in this source to run what was read from a file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            yield str(node.module)
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            given = {k.arg: getattr(k.value, "value", None) for k in node.keywords}
            if name in BUILTINS or name in CALLS or given.get("shell"):
                yield name
            if name in NEEDED and given.get(NEEDED[name][0]) is not NEEDED[name][1]:
                yield name
            if given.get("allow_pickle") or given.get("weights_only") is False:
                yield name


def test_no_source_file_can_run_what_it_reads() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 50
    found = {f"{path.name}: {name}" for path in files for name in offences(path.read_text())}
    assert found == set()


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from yaml import load",
        "import marshal as m",
        "eval('1')",
        "exec(code)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "np.lib.format.read_array(f, allow_pickle=True)",
        "subprocess.run(command, shell=True)",
        "os.system('ls')",
    ],
)
def test_the_search_finds(text: str) -> None:
    assert list(offences(text))


def test_the_search_lets_pass() -> None:
    fine = "model.eval()\nre.compile('x')\ntorch.compile(f)\ntorch.load(p, weights_only=True)\n"
    assert list(offences(fine + "np.load(p, allow_pickle=False)\njson.load(f)")) == []


def test_the_page_runs_no_text_either() -> None:
    for path in (SOURCE / "explorer" / "page").iterdir():
        found = SCRIPT.findall(path.read_text(encoding="utf-8"))
        assert found == [], f"{path.name}: {found}"
