"""`onnxfarm serve`: runs a whole farm on this machine, with a node."""

from pathlib import Path
from typing import Annotated

import typer

from onnxfarm.here.home import check_server_installed, exec_module, find_farm_home
from onnxfarm.problems import Usage, exit_with_problem

# named here and not imported, because the client never imports the server
SERVER = "farm.config.embedded.serve"


@exit_with_problem()
def serve(
    home: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Database, files, keys, logs.", show_default="$ONNXFARM_HOME, else ./var"),
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65_535, metavar="N", help="Port of the pages.")] = 8000,
    tls_cert: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Certificate in PEM: other machines get the pages by HTTPS.", show_default="no TLS"
        ),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its private key, not encrypted.", show_default="no TLS")
    ] = None,
    tls_port: Annotated[
        int, typer.Option(min=1, max=65_534, metavar="N", help="HTTPS port of the pages; needs --tls-cert.")
    ] = 8443,
    node: Annotated[bool, typer.Option("--node/--no-node", help="Whether this machine measures too.")] = True,
) -> None:
    """Start a farm on this machine, and keep it up until Ctrl-C. Prints a one-time sign-in link."""
    check_server_installed()
    if (tls_cert is None) != (tls_key is None):
        raise Usage("--tls-cert and --tls-key come together: the certificate, and the key that it was made with.")
    words = ["--home", str(find_farm_home(home)), "--port", str(port), *([] if node else ["--no-node"])]
    if tls_cert is not None:
        words += ["--tls-cert", str(tls_cert), "--tls-key", str(tls_key), "--tls-port", str(tls_port)]
    exec_module(SERVER, *words)
