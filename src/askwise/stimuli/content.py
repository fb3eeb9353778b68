"""What is shown or played: bytes of a known type, or an address elsewhere."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from askwise.errors import Refused

Shown = Literal["text", "image", "audio", "video", "html"]
"""How a page presents it."""

SUFFIXES: dict[str, tuple[Shown, str]] = {
    ".txt": ("text", "text/plain; charset=utf-8"),
    ".html": ("html", "text/html; charset=utf-8"),
    ".svg": ("image", "image/svg+xml"),
    ".png": ("image", "image/png"),
    ".jpg": ("image", "image/jpeg"),
    ".jpeg": ("image", "image/jpeg"),
    ".gif": ("image", "image/gif"),
    ".webp": ("image", "image/webp"),
    ".avif": ("image", "image/avif"),
    ".wav": ("audio", "audio/wav"),
    ".mp3": ("audio", "audio/mpeg"),
    ".m4a": ("audio", "audio/mp4"),
    ".ogg": ("audio", "audio/ogg"),
    ".opus": ("audio", "audio/ogg"),
    ".flac": ("audio", "audio/flac"),
    ".mp4": ("video", "video/mp4"),
    ".webm": ("video", "video/webm"),
}
"""By the end of a file's name: how it is presented, and its media type."""
_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n", ".png"),
    (0, b"\xff\xd8\xff", ".jpg"),
    (0, b"GIF8", ".gif"),
    (8, b"WEBP", ".webp"),
    (8, b"WAVE", ".wav"),
    (0, b"ID3", ".mp3"),
    (0, b"\xff\xfb", ".mp3"),
    (0, b"OggS", ".ogg"),
    (0, b"fLaC", ".flac"),
    (4, b"ftypavif", ".avif"),
    (4, b"ftypM4A", ".m4a"),
    (4, b"ftyp", ".mp4"),
    (0, b"\x1a\x45\xdf\xa3", ".webm"),
)
"""Position, bytes found there, and what they mean."""


@dataclass(frozen=True)
class Content:
    """Bytes to be presented."""

    data: bytes
    suffix: str
    """One of `SUFFIXES`, by which its type is known."""

    @classmethod
    def of_file(cls, path: Path) -> "Content":
        """The content of a file, by the end of its name or, without one, by its first bytes."""
        data = path.read_bytes()
        suffix = path.suffix.lower()
        return cls(data, suffix) if suffix in SUFFIXES else cls.of_bytes(data)

    @classmethod
    def of_bytes(cls, data: bytes) -> "Content":
        """Bytes whose type is known by the first of them, or which are text."""
        for start, mark, suffix in _MAGIC:
            if data[start : start + len(mark)] == mark:
                return cls(data, suffix)
        try:
            return cls.of_text(data.decode("utf-8"))
        except UnicodeDecodeError:
            advice = "End the name of the file with .png or .wav, say; in a command, write {out.png}."
            raise Refused("stimulus", "be of a known type", "other bytes", advice) from None

    @classmethod
    def of_text(cls, text: str) -> "Content":
        """An SVG picture, a piece of HTML, or plain text."""
        start = text.lstrip()[:200].lower()
        if start.startswith("<svg") or (start.startswith("<?xml") and "<svg" in text[:1000].lower()):
            return cls(text.encode(), ".svg")
        return cls(text.encode(), ".html" if start.startswith("<") else ".txt")

    @property
    def shown(self) -> Shown:
        """How it is presented."""
        return SUFFIXES[self.suffix][0]


@dataclass(frozen=True)
class Link:
    """An address elsewhere, from which browsers get it."""

    url: str
    shown: Shown
