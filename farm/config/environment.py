"""Reads the settings of a farm from environment variables with the prefix ONNXFARM_."""

import hashlib
import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from farm.accounts.openid.registration import Registration

# a Unix socket's path holds at most 107 bytes on Linux, 103 on macOS
MAX_SOCKET_PATH = 100
OWNS_EVERY_MODEL = "yes-i-own-every-model"
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
MAIL_PORTS = {"smtp": 25, "smtps": 465, "smtp+tls": 587}
MAIL_TIMEOUT_S = 15
# a larger file of the bucket is read through a temporary file
MAX_MEMORY_BYTES = 8 << 20
ADDRESSES_FILE = "addresses.json"


class Environment(BaseSettings):
    """All settings of a farm. The defaults are those of the embedded farm: SQLite, a bundled broker and local files.

    `public_host` is that of the public address, or 127.0.0.1 where it names none; `broker` is the broker's address.
    """

    model_config = SettingsConfigDict(env_prefix="ONNXFARM_", extra="ignore")

    home: Path = Path("var")  # folder of database, store, keys and logs
    debug: bool = False  # Django's own; never where others reach the farm
    secret_key: str = ""  # signs sessions, attempt tokens and badges; empty: made once, kept in the home folder
    # sqlite:///absolute/path or postgresql://user:password@host/name; empty: db.sqlite3 in the home folder
    database_url: str = ""
    store_dir: Path | None = None  # uploaded and made files; empty: store in the home folder
    # an S3-compatible bucket that holds the store's files for several machines; the keys are boto3's own,
    # AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. Empty: the folder alone
    bucket: str = ""
    bucket_url: str = ""  # the bucket's address where it is not Amazon's
    bucket_region: str = ""  # the bucket's region
    broker_url: str = ""  # redis://…, rediss://… or redis+socket:///path; empty: the embedded broker's socket
    # what people type, and every link begins with; `https://` switches on secure cookies, HSTS and redirects; empty: as
    # the farm of the home folder was started last, else http://127.0.0.1 with the web port
    public_url: str = ""
    gateway_url: str = ""  # what nodes are told; empty: as the public address
    web_port: int = 8000  # where `deploy/process web` listens
    # names the web server answers to, comma-separated; the host of the public address is always one
    allowed_hosts: str = "127.0.0.1,localhost"
    behind_proxy: bool = False  # a TLS proxy stands in front and sets X-Forwarded-Proto itself
    # `manage.py collectstatic` was run: serve hashed, compressed files from static in the home folder
    collected_static: bool = False
    max_upload_bytes: int = 16 * 1024**3  # of one upload
    disk_reserve_bytes: int = 512 * 1024**2  # uploads are refused when the disk would be left with less
    inspection_timeout_s: float = 30.0  # wall-clock limit of a sandboxed look at one model
    making_timeout_s: float = 600.0  # wall-clock limit of sandboxed making of a variant or reference
    tick_s: float = 1.0  # seconds between two ticks: dispatch and sweep
    lease_s: float = 30.0  # how long a node holds a block without a heartbeat; it sends four in that time
    # seconds between two looks for new releases on the package index that pip is set up for; 0: never
    index_poll_s: float = 540.0
    # where ONNX Runtime Web is fetched from for browsers that are nodes
    npm_registry: str = "https://registry.npmjs.org/"
    # smtp://user:password@host:port, smtps://… (TLS) or smtp+tls://… (STARTTLS); empty: the farm sends no mail
    mail_url: str = ""
    mail_from: str = "onnxfarm@localhost"  # the sender of mails
    # inner networks that webhooks and channels may reach too, comma-separated: 10.1.0.0/16,127.0.0.1/32; empty:
    # they may reach public addresses by HTTPS alone
    webhook_networks: str = ""
    # packages beyond the known distributions that nodes may install, by name, comma-separated; the owner of a node has
    # to allow each as well. Whoever may start a run may then run any code of theirs on such a node. A plug-in with its
    # ONNX Runtime is `NAME+onnxruntime>=1.29,<1.31`
    allowed_packages: str = ""
    # the token with which /metrics can be read from anywhere; empty: it can be read from this machine only
    metrics_token: str = ""
    # `yes-i-own-every-model`: models are read even where no sandbox holds, with all rights of this farm's processes
    unsandboxed: str = ""
    # OpenID Connect: the issuer's address as its own document spells it; empty: people sign in by one-time links alone
    oidc_issuer: str = ""
    oidc_client_id: str = ""  # the farm's registration at the issuer
    oidc_client_secret: SecretStr = SecretStr("")  # its secret
    oidc_client_secret_file: Path | None = None  # a file that holds the secret, in its place
    oidc_name: str = ""  # what the button says; empty: the issuer's host
    oidc_scopes: str = "openid profile email"  # what the farm asks for
    # the claim that holds groups; a dot leads into an object: realm_access.roles
    oidc_groups_claim: str = "groups"
    oidc_admin_group: str = ""  # whoever is in it administers the farm; empty: groups make nobody an administrator
    # hosts besides the issuer's own that its document may lead to, comma-separated: oauth2.example,keys.example
    oidc_hosts: str = ""
    oidc_ca_file: str = ""  # certificates of a private authority
    oidc_session_h: float = 12.0  # after how many hours somebody signs in there again
    oidc_token_days: float = 30.0  # after how many days without a sign-in there somebody's tokens rest
    # `false`: one-time links of the farm's own open nothing, except those of `sign_in_link --emergency`
    local_sign_in: bool = True
    log_level: str = "INFO"  # of the processes' logs

    @model_validator(mode="after")
    def _fill_in_addresses(self) -> Self:
        """Fill in both addresses, so that links that `manage.py` makes have the farm's host and port too."""
        if not self.public_url:
            addresses = load_addresses(self.home)
            self.public_url = addresses.get("public_url") or f"http://127.0.0.1:{self.web_port}"
            self.gateway_url = self.gateway_url or addresses.get("gateway_url", "")
        return self

    @property
    def owns_every_model(self) -> bool:
        return self.unsandboxed == OWNS_EVERY_MODEL

    @property
    def public_host(self) -> str:
        return urlsplit(self.public_url).hostname or "127.0.0.1"

    @property
    def is_local(self) -> bool:
        """Whether the farm's public address is an http:// address of this machine."""
        return self.public_url.startswith("http://") and self.public_host in LOCAL_HOSTS

    @property
    def hosts(self) -> list[str]:
        """The hosts for Django's ALLOWED_HOSTS, sorted: those of the setting and of both addresses."""
        named = {host.strip() for host in self.allowed_hosts.split(",")}
        return sorted({*named, self.public_host, urlsplit(self.gateway_url).hostname or ""} - {""})

    @property
    def broker_socket(self) -> Path:
        """The embedded broker's Unix socket: in the home folder, or in the system's for temporary files if that path is
        too long."""
        path = self.home.resolve() / "broker.sock"
        if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
            return path
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"onnxfarm-{os.getuid()}-{digest}.sock"

    @property
    def broker(self) -> str:
        return self.broker_url or f"redis+socket://{self.broker_socket}"

    def read_or_create_secret_key(self) -> str:
        """Return the secret key: the setting, else that in the home folder, which is created there the first time."""
        if self.secret_key:
            return self.secret_key
        path = self.home / "secret_key"
        if not path.exists():
            self.home.mkdir(parents=True, exist_ok=True)
            _create_once(path, secrets.token_urlsafe(64))
        return path.read_text()


def _create_once(path: Path, text: str) -> None:
    """Create a file, whole or not at all. If another process has created it already, its text stays."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # mode 0600
    with os.fdopen(handle, "w") as file:
        file.write(text)
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        os.unlink(draft)


def make_database_settings(url: str, *, home: Path) -> dict[str, object]:
    """Make Django's DATABASES entry from a URL. Raises ValueError for another scheme than these.

    `url`: `sqlite:///absolute/path` or `postgresql://user:password@host:port/name?option=value`; empty: the SQLite file
    db.sqlite3 in `home`.
    """
    parts = urlsplit(url)
    if parts.scheme in ("", "sqlite"):
        return _sqlite(Path(unquote(parts.path)) if url else home / "db.sqlite3")
    if parts.scheme in ("postgres", "postgresql"):
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.removeprefix("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": unquote(parts.hostname or ""),
            "PORT": str(parts.port or ""),
            "OPTIONS": dict(parse_qsl(parts.query)),
        }
    raise ValueError(
        f"ONNXFARM_DATABASE_URL starts with {parts.scheme}://; use sqlite:///absolute/path or postgresql://…"
    )


def _sqlite(path: Path) -> dict[str, object]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            "timeout": 30,
            # take the write lock at BEGIN: a later upgrade of a read lock fails at once instead of waiting
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
        },
        # a file, so that tests can share it with real worker processes
        "TEST": {"NAME": str(path.with_name(f"test-{path.name}"))},
    }


def make_mail_settings(url: str) -> dict[str, object]:
    """Make Django's EMAIL settings from a URL. Raises ValueError for another scheme than these, or without a host.

    `url`: `smtp://user:password@host:port`, `smtps://…` or `smtp+tls://…`; empty: no mail is sent.
    """
    if not url:
        return {"EMAIL_BACKEND": "django.core.mail.backends.dummy.EmailBackend"}
    parts = urlsplit(url)
    if parts.scheme not in MAIL_PORTS or not parts.hostname:
        raise ValueError(
            "ONNXFARM_MAIL_URL must look like smtp://host, smtps://user:password@host or smtp+tls://user:password@host"
        )
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or MAIL_PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_TIMEOUT": MAIL_TIMEOUT_S,
    }


def make_bucket_storage(name: str, *, url: str = "", region: str = "") -> dict[str, object]:
    """Make Django's STORAGES entry of an S3 bucket. `url`: of an S3-compatible server; empty: Amazon's."""
    options: dict[str, object] = {
        "bucket_name": name,
        "file_overwrite": True,
        "default_acl": None,
        "gzip": False,
        "max_memory_size": MAX_MEMORY_BYTES,
    }
    if url:
        options |= {"endpoint_url": url, "addressing_style": "path"}
    if region:
        options["region_name"] = region
    return {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}


def read_registration(environment: Environment) -> Registration | None:
    """Read the farm's registration at an OpenID Connect issuer; None if no issuer is set.

    It is not validated: `Registration.problem` says what is wrong with it.
    """
    issuer = environment.oidc_issuer.strip()
    if not issuer:
        return None
    return Registration(
        issuer=issuer,
        client_id=environment.oidc_client_id.strip(),
        secret=_read_client_secret(environment),
        name=environment.oidc_name.strip()[:60] or _read_host(issuer),
        scopes=tuple(dict.fromkeys(["openid", *environment.oidc_scopes.split()])),
        groups_claim=environment.oidc_groups_claim.strip() or "groups",
        admin_group=environment.oidc_admin_group.strip(),
        hosts=tuple(host.strip().lower() for host in environment.oidc_hosts.split(",") if host.strip()),
        ca_file=environment.oidc_ca_file,
        session_h=environment.oidc_session_h,
        token_days=environment.oidc_token_days,
    )


def _read_client_secret(environment: Environment) -> str:
    """Return the client secret; empty if its file cannot be read, which `manage.py check` and sign-in report."""
    if environment.oidc_client_secret_file is None:
        return environment.oidc_client_secret.get_secret_value().strip()
    try:
        return environment.oidc_client_secret_file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _read_host(issuer: str) -> str:
    try:
        return urlsplit(issuer).hostname or "the identity provider"
    except ValueError:
        return "the identity provider"


def save_addresses(home: Path, *, public_url: str, gateway_url: str) -> None:
    """Store both addresses in the home folder, for `load_addresses`. The file is replaced whole or not at all.

    Raises OSError if it cannot be written.
    """
    draft = home / f".{ADDRESSES_FILE}.part"
    draft.write_text(json.dumps({"public_url": public_url, "gateway_url": gateway_url}) + "\n")
    draft.replace(home / ADDRESSES_FILE)


def load_addresses(home: Path) -> dict[str, str]:
    """Return the stored addresses by name: `public_url` and `gateway_url`. Invalid ones are left out.

    Empty if nothing was stored or the file cannot be read. Raises nothing.
    """
    try:
        addresses = json.loads((home / ADDRESSES_FILE).read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(addresses, dict):
        return {}
    return {
        name: url for name, url in addresses.items() if isinstance(url, str) and url.startswith(("http://", "https://"))
    }
