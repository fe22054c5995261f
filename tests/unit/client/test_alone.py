"""The wheel without extras is the client alone: its commands import nothing that only a farm or a node has."""

import subprocess
import sys
from pathlib import Path

COMMANDS = (
    *("commands.submit", "commands.plan", "commands.status", "commands.results", "commands.cancel", "commands.models"),
    *("commands.login", "remote.account", "screen", "remote.runs", "commands.watch", "commands.alerts"),
    *("commands.report", "commands.docs", "commands.doctor"),
)
EXTRAS = ("numpy", "scipy", "onnx", "onnxruntime", "celery", "django", "ninja", "redis", "psutil")
SCRIPT = """
import sys
for name in {extras}:
    sys.modules[name] = None  # importing it now fails, as where it is not installed
for name in {commands}:
    __import__(f"onnxfarm.{{name}}")
from onnxfarm.main import app
app(["--help"])
"""


def test_the_clients_commands_work_without_the_extras() -> None:
    script = SCRIPT.format(extras=EXTRAS, commands=COMMANDS)
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "submit" in done.stdout


def test_a_command_that_needs_an_extra_says_which() -> None:
    hidden = f"import sys\nfor name in {EXTRAS}: sys.modules[name] = None\n"
    script = hidden + "from onnxfarm.main import app\napp(['bisect', 'x'])"
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, "pip install '.[node]' in this checkout" in done.stderr) == (3, True), done.stderr
    assert "Traceback" not in done.stderr
