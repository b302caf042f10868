"""A secret of the home, which nobody else on the machine can read."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from appca.storage import lock

_FILE = "secret"
_BYTES = 32


def secret(home: Path) -> bytes:
    """Return 32 random bytes that are the same for all processes with this home.

    Raises
    ------
    OSError
        When the home cannot be written to, or the secret not be read again.
    """
    home.mkdir(parents=True, exist_ok=True)
    with lock.held(home):
        file = home / _FILE
        with suppress(OSError):
            found = file.read_bytes()
            private = os.name != "posix" or file.stat().st_mode & 0o077 == 0
            if len(found) == _BYTES and private:
                return found
        file.unlink(missing_ok=True)  # damaged, or others may have read it
        made = secrets.token_bytes(_BYTES)
        file.touch(mode=0o600, exist_ok=False)
        file.write_bytes(made)
        return made
