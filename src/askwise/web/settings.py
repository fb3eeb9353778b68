"""What the server was started with, as JSON for its workers."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ENVIRONMENT = "ASKWISE_SERVE"
"""The variable by which workers get their settings."""


@dataclass(frozen=True)
class Settings:
    """What the server was started with."""

    storage: str = "askwise.db"
    """Where studies are kept that are created here, or whose file says nothing about it."""
    files: tuple[str, ...] = ()
    """Study files."""
    server_file: str | None = None
    """Keys and links; by default beside the database."""
    host: str = "127.0.0.1"
    root_path: str = ""
    """Path under which a proxy shows the server."""
    hosts: tuple[str, ...] = ()
    """Further names by which browsers may reach it."""
    origins: tuple[str, ...] = ()
    """Pages elsewhere whose scripts may use the API with a participant's link."""
    public_url: str | None = None
    """How browsers reach it, if by way of a proxy."""
    largest: int = 2**20
    """Bytes of a request."""
    rate: float = 100.0
    """Requests a second from one address, on average."""
    threads: int = 16
    """Requests that are answered at once."""
    present: str | None = None
    """A command that makes what is shown of an option, in place of what study files say."""
    notes: str | None = None
    """Folder in which workers leave each other their metrics."""
    ahead: bool = False
    """Whether questions are computed ahead by a process of their own, else by a thread."""
    log: bool = False
    """Whether every request is logged."""
    imports: tuple[str, ...] = ()
    """Modules of plug-ins."""

    def to_json(self) -> str:
        """For :meth:`from_json` in another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Settings":
        """Settings that :meth:`to_json` wrote."""
        read: dict[str, Any] = json.loads(text)
        plain: dict[str, Any] = {key: tuple(x) if isinstance(x, list) else x for key, x in read.items()}
        return cls(**plain)

    @classmethod
    def from_environment(cls) -> "Settings":
        """Settings of the process that started this one."""
        return cls.from_json(os.environ[ENVIRONMENT])

    @property
    def is_public_https(self) -> bool:
        """Whether browsers reach it by https, so that cookies are never sent otherwise."""
        return (self.public_url or "").startswith("https://")

    @property
    def keeps(self) -> Path:
        """The file with keys and links: beside a SQLite database, else in the working directory."""
        if self.server_file is not None:
            return Path(self.server_file).expanduser().absolute()
        name = self.storage.removeprefix("sqlite:///").partition("?")[0]
        file = Path("askwise" if "://" in name else name).expanduser().absolute()
        return file.with_name(f"{file.name}.server.json")

    @property
    def media(self) -> Path:
        """The folder of pictures and sounds that were shown, beside the file with keys and links."""
        return self.keeps.with_name(f"{self.keeps.name.removesuffix('.server.json')}.media")
