"""Settings of a farm, read from the environment (prefix ONNXFARM_)."""

import secrets
from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict


class Environment(BaseSettings):
    """Every knob of an installation. The defaults make the embedded farm: SQLite, a bundled broker, local files."""

    model_config = SettingsConfigDict(env_prefix="ONNXFARM_", extra="ignore")

    home: Path = Path("var")
    debug: bool = False
    secret_key: str = ""
    database_url: str = ""
    broker_url: str = ""
    public_url: str = "http://127.0.0.1:8000"
    gateway_url: str = ""
    allowed_hosts: str = "127.0.0.1,localhost"

    @property
    def is_local(self) -> bool:
        """Whether the farm is reached over plain HTTP on this machine alone."""
        return self.public_url.startswith("http://127.0.0.1") or self.public_url.startswith("http://localhost")

    def read_secret_key(self) -> str:
        """The secret key; made once and kept in the home folder when none is set."""
        if self.secret_key:
            return self.secret_key
        path = self.home / "secret_key"
        if not path.exists():
            self.home.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_text(secrets.token_urlsafe(64))
        return path.read_text()
