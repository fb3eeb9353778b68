"""Completion codes: what participants show to prove that they have finished."""

import base64
import hashlib
import hmac

_LENGTH = 8


def completion_code(secret: str, study: str, participant: str | None) -> str:
    """The code of a participant, always the same, and guessed by nobody without the server's secret.

    >>> completion_code("secret", "hall", "ann")
    'ZDBR-JNDE'
    """
    message = f"completion\0{study}\0{'' if participant is None else participant}"
    digest = hmac.new(secret.encode(), message.encode(), hashlib.sha256).digest()
    text = base64.b32encode(digest).decode()[:_LENGTH]
    return f"{text[: _LENGTH // 2]}-{text[_LENGTH // 2 :]}"
