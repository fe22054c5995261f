"""The farm's one kind of web server: uvicorn, for pages and the API of people (`web`) and for nodes (`gateway`).

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
# pages that fill in by themselves ask every two seconds: their connection is not to be made anew each time
KEEP_ALIVE_S = 10
# uvicorn leaves asyncio's minute to whoever begins a TLS handshake
MAX_HANDSHAKE_S = 10.0
# below this, few silent clients keep everybody out; systemd and containers set it, a shell has `ulimit -n`
MIN_OPEN_FILES = 4096


class Loop(uvloop.Loop):
    """An event loop whose servers wait no longer than MAX_HANDSHAKE_S for a TLS handshake."""

    async def create_server(  # type: ignore[override]
        self, *args: Any, ssl: Any = None, **kwargs: Any
    ) -> asyncio.AbstractServer:
        if ssl is not None:
            kwargs["ssl_handshake_timeout"] = MAX_HANDSHAKE_S
        return await super().create_server(*args, ssl=ssl, **kwargs)


def main() -> None:
    """Serve until SIGTERM or SIGINT; requests under way get `--stop-within` seconds to end."""
    parser = argparse.ArgumentParser(prog="python -m farm.config.server")
    parser.add_argument("kind", choices=APPLICATIONS)
    parser.add_argument("--host", default=HOST)
    parser.add_argument("--port", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cert", help="a certificate, which makes the address https://")
    parser.add_argument("--key", help="the certificate's key")
    parser.add_argument(
        "--stop-within", type=int, default=STOP_REQUESTS_S, help="seconds that requests under way get to end"
    )
    parser.add_argument("--log-level", default="warning")
    given = parser.parse_args()
    # a slow client costs a descriptor and nothing else
    _, open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))
    if open_files != resource.RLIM_INFINITY and open_files < MIN_OPEN_FILES:
        log.warning("%d open files are allowed: as many silent clients keep everybody out; allow more.", open_files)
    uvicorn.run(
        APPLICATIONS[given.kind],
        host=given.host,
        port=given.port or PORTS[given.kind],
        workers=given.workers,
        http=LimitedProtocol,
        proxy_headers=False,  # farm.base.forwarded
        loop="farm.config.server:Loop",
        ssl_certfile=given.cert,
        ssl_keyfile=given.key,
        access_log=False,
        log_level=given.log_level,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=given.stop_within,
    )


if __name__ == "__main__":
    main()
