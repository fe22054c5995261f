"""Finds the address and token of a farm: from an option, the environment, or the file of `onnxfarm login`."""

import json
import os
import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, TypedDict, cast
from urllib.parse import SplitResult, urlsplit

import typer

from farm.base.private_files import write_private_file
from onnxfarm.problems import Infrastructure, Usage

SERVER_VARIABLE = "ONNXFARM_SERVER"
TOKEN_VARIABLE = "ONNXFARM_TOKEN"

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="The farm's address.",
        show_default=f"${SERVER_VARIABLE}, else that of `onnxfarm login`",
    ),
]


@dataclass(frozen=True, slots=True)
class Account:
    """A farm's address and the user's token there. The address must have no slash at its end.

    Raises Usage if a token must not be sent to this address; see `check_address`, which also removes such a slash.
    """

    server: str
    token: str

    def __post_init__(self) -> None:
        check_address(self.server)


class Farms(TypedDict, total=False):
    """The file of `onnxfarm login`. `default`: the address of the newest login. `tokens`: a token by address."""

    default: str
    tokens: dict[str, str]


def find_account(server: str | None = None) -> Account:
    """Return the account of a farm: of `server`, else of $ONNXFARM_SERVER, else of the newest `onnxfarm login`.

    Its token is $ONNXFARM_TOKEN, else that of `onnxfarm login` for this address. Raises Usage if no farm is named, if
    there is no token, if a token must not be sent there, or if the file of `onnxfarm login` cannot be read.
    """
    farms = _read_farms()
    address = server or os.environ.get(SERVER_VARIABLE) or farms.get("default")
    if not address:
        raise Usage(
            f"No farm is named: give --server URL, set {SERVER_VARIABLE}, or run `onnxfarm login --server URL` once."
        )
    address = check_address(str(address))
    token = os.environ.get(TOKEN_VARIABLE) or farms.get("tokens", {}).get(address)
    if not token:
        raise Usage(
            f"There is no token for {address}: set {TOKEN_VARIABLE}, or run `onnxfarm login --server {address}`. "
            f"Tokens are made on the farm's settings page."
        )
    return Account(address, str(token).strip())


def check_address(address: str) -> str:
    """Return a farm's address without slashes at its end. Raises Usage if a token must not be sent there.

    The address must be https://, or http:// to this machine: `localhost` or a loopback address. Other host names are
    not resolved, because they may resolve to another machine later. Addresses with user names, spaces or backslashes
    are refused.
    """
    parts = _split_address(address)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise Usage(
            f"“{_hide_password(address)}” is not a farm's address: write it like https://farm.example or http://127.0.0.1:8000."
        )
    if parts.username is not None or "\\" in address or not address.isprintable() or " " in address:
        raise Usage(
            f"“{_hide_password(address)}” is not a farm's address: an address has no user name, spaces or backslashes."
        )
    if parts.scheme == "http" and not _is_this_machine(parts.hostname):
        raise Usage(
            f"{address} is plain HTTP to another machine: anybody on the network between could read the token. "
            f"Use https://{parts.netloc}, or a tunnel to the farm: ssh -L 8000:127.0.0.1:8000 {parts.hostname}, "
            "then http://127.0.0.1:8000."
        )
    return address.rstrip("/")


def _hide_password(address: str) -> str:
    return re.sub(r"//.*@", "//…@", address)


def _split_address(address: str) -> SplitResult | None:
    """Return the parts of an address; None for an invalid one such as http://[::1 or https://farm.example:eight."""
    try:
        parts = urlsplit(address)
        # reading the port raises ValueError if it is invalid
        _ = parts.port
    except ValueError:
        return None
    return parts


def _is_this_machine(host: str) -> bool:
    """Say whether a host is `localhost` or an address of the loopback interface."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def store_account(account: Account) -> Path:
    """Store the account as the default one, in a file that only this user can read. Return the file's path.

    Tokens of other farms stay in it. Raises Infrastructure if it cannot be written, and Usage if the existing file
    cannot be read.
    """
    path = locate_config_file()
    farms = _read_farms()
    tokens = {**farms.get("tokens", {}), account.server: account.token}
    try:
        write_private_file(path, json.dumps({"default": account.server, "tokens": tokens}, indent=2) + "\n")
    except OSError as problem:
        raise Infrastructure(f"{path} cannot be written ({problem.strerror}).") from problem
    return path


def locate_config_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "onnxfarm" / "farms.json"


def _read_farms() -> Farms:
    path = locate_config_file()
    try:
        farms = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise Usage(f"{path} cannot be read ({problem}): remove it and run `onnxfarm login` again.") from problem
    if not isinstance(farms, dict) or not isinstance(farms.get("tokens", {}), dict):
        raise Usage(f"{path} is not a file of `onnxfarm login`: remove it and log in again.")
    return cast(Farms, farms)
