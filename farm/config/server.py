"""The farm's web server, uvicorn: for pages and the API for people (`web`), and for nodes (`gateway`).

    python -m farm.config.server web|gateway [--host H] [--port N] [--workers N] [--cert FILE --key FILE]
        [--stop-within SECONDS] [--log-level LEVEL]

docs/operations.md says which limits slow clients have, and how to put another server in front of farm.config.wsgi.
"""

import argparse
import asyncio
import logging
import resource
from typing import Any

import uvicorn
import uvloop

from farm.base.connections import LimitedProtocol
from farm.config.processes import GATEWAY, HOST, STOP_REQUESTS_S, WEB

log = logging.getLogger(__name__)
APPLICATIONS = {WEB.name: "farm.config.wsgi:bridge", GATEWAY.name: "farm.config.asgi:application"}
PORTS = {server.name: server.port for server in (WEB, GATEWAY)}
# longer than the two seconds after which open pages poll again, so that they keep their connection
KEEP_ALIVE_S = 10
# by default, asyncio allows a minute for a TLS handshake
MAX_HANDSHAKE_S = 10.0
# with fewer, a few silent clients lock everybody out; systemd and containers set it, and `ulimit -n` in a shell
MIN_OPEN_FILES = 4096


class Loop(uvloop.Loop):
    """An event loop whose servers wait at most MAX_HANDSHAKE_S seconds for a TLS handshake."""

    async def create_server(  # type: ignore[override]
        self, *args: Any, ssl: Any = None, **kwargs: Any
    ) -> asyncio.AbstractServer:
        """Start a server as uvloop does, with the limit of a TLS handshake."""
        if ssl is not None:
            kwargs["ssl_handshake_timeout"] = MAX_HANDSHAKE_S
        return await super().create_server(*args, ssl=ssl, **kwargs)


def main() -> None:
    """Serve until SIGTERM or SIGINT. Open requests then get `--stop-within` seconds to end.

    The limit of open files is raised as far as the system allows; the log warns if that is below MIN_OPEN_FILES.
    """
    parser = argparse.ArgumentParser(prog="python -m farm.config.server")
    parser.add_argument("kind", choices=APPLICATIONS)
    parser.add_argument("--host", default=HOST)
    parser.add_argument("--port", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cert", help="a certificate, which makes the address https://")
    parser.add_argument("--key", help="the certificate's key")
    parser.add_argument(
        "--stop-within", type=int, default=STOP_REQUESTS_S, help="seconds that open requests get to end"
    )
    parser.add_argument("--log-level", default="warning")
    options = parser.parse_args()
    # each slow client needs a file descriptor: allow as many as the system does
    _, open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))
    if open_files != resource.RLIM_INFINITY and open_files < MIN_OPEN_FILES:
        log.warning("%d open files are allowed: as many silent clients keep everybody out; allow more.", open_files)
    uvicorn.run(
        APPLICATIONS[options.kind],
        host=options.host,
        port=options.port or PORTS[options.kind],
        workers=options.workers,
        http=LimitedProtocol,
        proxy_headers=False,  # farm.base.forwarded reads them
        loop="farm.config.server:Loop",
        ssl_certfile=options.cert,
        ssl_keyfile=options.key,
        access_log=False,
        log_level=options.log_level,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=options.stop_within,
    )


if __name__ == "__main__":
    main()
