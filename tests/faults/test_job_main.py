"""What a script or a notebook defines is found in its job where Python's own tools look for it: in `__main__`."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[2]
SCRIPT = """
import multiprocessing, pickle, sys
from concurrent.futures import ProcessPoolExecutor
from helpers import run

class Point:
    def __init__(self, x):
        self.x = x

def square(x):
    return x * x

def pool(method):
    with multiprocessing.get_context(method).Pool(1) as workers:
        return workers.map(square, [2, 3])

def executor():
    with ProcessPoolExecutor(1) as workers:
        return list(workers.map(square, [4]))

def pickled():
    return pickle.loads(pickle.dumps(Point(5))).x

def pickled_argument(point):
    return pickle.loads(pickle.dumps(point)).x

def count():
    global counter
    counter = 7
    return sys.modules["__main__"].counter, sys.argv[1:]

if __name__ == "__main__":
    calls = [(pool, "fork"), (executor,), (pickled,), (pickled_argument, Point(6)), (count,)]
    if "spawn" in sys.argv:
        calls.append((pool, "spawn"))
    for call in calls:
        trial = run(*call, timeout=100)
        print(trial.value if trial.outcome == "finished" else trial.verdict)
    returned = run(Point, 8).value
    print(type(returned) is Point, "counter" in globals())
"""
ANSWERS = ["[4, 9]", "[16]", "5", "6"]


def printed(*command, **keywords):
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    result = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=300, **keywords
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_a_scripts_own_functions_and_classes_can_be_pickled_in_its_job(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    lines = printed(script, "spawn", cwd=tmp_path)
    assert lines == [*ANSWERS, "(7, ['spawn'])", "[4, 9]", "True False"]


def test_so_can_those_of_a_notebook(tmp_path):
    notebook = """
from IPython.core.interactiveshell import InteractiveShell
import sys
shell = InteractiveShell.instance()
sys.modules["__main__"] = shell.user_module
shell.run_cell(open(sys.argv.pop(1)).read()).raise_error()
"""
    script = tmp_path / "cell.py"
    script.write_text(SCRIPT)
    (tmp_path / "kernel.py").write_text(notebook)
    assert printed(tmp_path / "kernel.py", script) == [*ANSWERS, "(7, [])", "True False"]
