"""`onnxfarm node enroll|start|status|runtimes|install-service`: makes this machine a node of a farm, and runs it."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from farm.contract.texts import strip_pydantic_prefix
from onnxfarm.commands.fleet import app as app
from onnxfarm.commands.options import JsonOption, PackagesOption
from onnxfarm.here import service
from onnxfarm.outputs import print_pairs, write_json
from onnxfarm.problems import Infrastructure, Usage, require_extra

HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        metavar="FOLDER",
        help="The node's folder.",
        show_default="$ONNXFARM_NODE_HOME, else onnxfarm-node in the user's data folder",
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option("--url", help="The farm's new address, if it has moved.", show_default="that of its enrolment"),
]
IndexesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-index", metavar="NAME", help="Also install builds of this index of the farm's admin; repeat."
    ),
]


@app.command()
def enroll(
    url: Annotated[str, typer.Argument(metavar="URL", help="The farm's address, https://…")],
    token: Annotated[str, typer.Option("--token", metavar="CODE", help="The one-time code from “Add a node”.")],
    name: Annotated[
        str | None, typer.Option(help="The name of this machine on the farm.", show_default="its host name")
    ] = None,
    home: HomeOption = None,
) -> None:
    """Join a farm. A person there approves this machine by its fingerprint; then it may work."""
    with require_extra("node"):
        from worker.agent import main
        from worker.agent.abilities import selftest
        from worker.agent.connection import enrolment, gateway
        from worker.agent.home import NodeHome
        from worker.agent.machine import facts
    folder = _make_node_folder(home)
    node_home = NodeHome(folder)
    try:
        self_test = None if node_home.is_enrolled else selftest.run_on_agent_runtime(folder)
        enrol = enrolment.enrol if name else enrolment.enrol_by_host_name
        name, machine = name or main.make_node_name(), facts.read_facts(busy_window_s=0)
        identity, enrolled = enrol(node_home, url=url, code=token, name=name, facts=machine, self_test=self_test)
    except (enrolment.AlreadyEnrolledError, gateway.RejectedError, gateway.LeaseLostError, ValueError) as problem:
        raise Usage(_describe_problem(problem)) from problem
    except gateway.GatewayError as problem:
        raise Infrastructure(f"{url} cannot be reached: {problem}") from problem
    print(f"This machine is node {identity.name!r} of {identity.url}, kept in {folder}.")
    print(f"Fingerprint: {identity.fingerprint}")
    if self_test is not None:
        print(f"Self-test: {self_test.sentence}")
    command = shlex.join(["onnxfarm", "node", "start", *(["--home", str(folder)] if home is not None else [])])
    if enrolled.health == "pending":
        print(f"Ask an admin of the farm to compare it and approve the node. Start it then, or now: {command}")
    else:
        print(f"Start it with: {command}")


@app.command()
def start(
    home: HomeOption = None,
    url: UrlOption = None,
    probe: Annotated[
        list[str] | None, typer.Option(metavar="PROVIDER", help="Verify this provider before the first block.")
    ] = None,
    allow_package: PackagesOption = None,
    allow_index: IndexesOption = None,
) -> None:
    """Work for the farm until Ctrl-C."""
    with require_extra("node"):
        from farm.workshop.divergence import find_first_divergence
        from worker.agent import main
        from worker.agent.home import AlreadyRunningError, NotEnrolledError
    try:
        status = main.start(
            _make_node_folder(home),
            search=find_first_divergence,
            url=url,
            probe_first=tuple(probe or ()),
            allowed=allow_package or (),
            indexes=allow_index or (),
        )
    except (AlreadyRunningError, NotEnrolledError, ValueError) as problem:
        raise Usage(_describe_problem(problem)) from problem
    raise typer.Exit(status)


@app.command()
def status(home: HomeOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Show who this node is and what the farm says of it.

    Exit codes: 0 the farm knows it, 1 it waits for approval or is refused, 3 the farm does not answer.
    """
    with require_extra("node"):
        from worker.agent.connection import node_status
        from worker.agent.home import NodeHome, NotEnrolledError
    try:
        node = node_status.read_status(NodeHome(_resolve_folder(home)), url=url)
    except NotEnrolledError as problem:
        raise Usage(str(problem)) from problem
    if as_json:
        write_json(node.as_plain())
    else:
        print_pairs(node.list_rows(), console=Console())
    if node.problem:
        raise Infrastructure(node.problem)
    if not node.is_known:
        raise typer.Exit(1)


@app.command()
def runtimes(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the runtimes that are installed on this node."""
    with require_extra("node"):
        from worker.agent.installation.runtimes import RuntimeStore
    installed = RuntimeStore(_resolve_folder(home) / "runtimes").list_installed()
    if as_json:
        names = ("runtime", "python", "bytes", "providers")
        rows = [(str(entry.runtime), entry.python_version, entry.bytes, list(entry.providers)) for entry in installed]
        write_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    if not installed:
        print("No runtimes yet: they are installed when the first block asks for them.")
        return
    table = Table("runtime", "Python", "MB", "providers in its build", box=None, pad_edge=False)
    for entry in installed:
        providers = ", ".join(name.removesuffix("ExecutionProvider") for name in entry.providers)
        table.add_row(str(entry.runtime), entry.python_version, f"{entry.bytes / 1e6:.0f}", providers)
    Console().print(table)


@app.command("install-service")
def install_service(
    home: HomeOption = None,
    print_only: Annotated[bool, typer.Option("--print", help="Print the file instead of writing it.")] = False,
    allow_package: PackagesOption = None,
    allow_index: IndexesOption = None,
) -> None:
    """Have systemd (Linux) or launchd (macOS) start this node with the machine, for this user."""
    command = _make_start_command(allow_package or (), allow_index or ())
    unit = service.make_unit(sys.platform, command=command, home=_resolve_folder(home))
    if print_only:
        print(unit.text, end="")
        return
    unit.path.parent.mkdir(parents=True, exist_ok=True)
    unit.path.write_text(unit.text)
    print(f"Wrote {unit.path}. To start it now and at every boot:")
    for line in unit.next_steps:
        print(f"  {line}")


def _make_start_command(packages: Sequence[str], indexes: Sequence[str]) -> list[str]:
    """Make the command `onnxfarm node start` as a list of words, with the full path of this program."""
    program = Path(sys.argv[0]).resolve()
    words = [str(program)] if os.access(program, os.X_OK) else [sys.executable, "-m", "onnxfarm.main"]
    allowed = [f"--allow-package={name}" for name in packages] + [f"--allow-index={name}" for name in indexes]
    return [*words, "node", "start", *allowed]


def _resolve_folder(home: Path | None) -> Path:
    """Return the node's folder as an absolute path, because processes that measure run in other folders."""
    with require_extra("node"):
        from worker.agent.home import default_folder
    return (home or default_folder()).resolve()


def _make_node_folder(home: Path | None) -> Path:
    """Return the node's folder, and make it if it is missing. Raises Infrastructure if it cannot be written."""
    folder = _resolve_folder(home)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        is_writable = False
    if not is_writable:
        raise Infrastructure(
            f"this user may not write in {folder}, where the node keeps its key and its runtimes: make that folder "
            "or volume its own (the image's user is 10001), or name another with --home."
        )
    return folder


def _describe_problem(problem: Exception) -> str:
    """Return the message of an error; for a pydantic ValidationError, a sentence about the first invalid field."""
    if not isinstance(problem, ValidationError):
        return str(problem)
    first = problem.errors()[0]
    text = strip_pydantic_prefix(first["msg"]).rstrip(".")
    return f"{'.'.join(map(str, first['loc']))} {text[:1].lower()}{text[1:]}; got {first['input']!r}."
