"""Stored JSON files changed by somebody who knows how to make their digests."""

import json
from collections.abc import Callable
from pathlib import Path

from appca.storage import digests


def reseal(file: Path) -> None:
    """Give a file the digest of what it says, if it says anything."""
    forge(file, lambda text: text)


def forge(file: Path, change: Callable[[str], str]) -> None:
    """Change the text of a file, and give it the digest of what it says then."""
    facts = json.loads(file.read_text(encoding="utf-8"))
    facts.pop(digests.SEAL, None)
    text = change(json.dumps(facts, indent=1, ensure_ascii=False))
    file.write_bytes(digests.sealed(text))


def rewrite(file: Path, **changes: object) -> None:
    """Change some of the facts in a file, likewise."""
    forge(
        file,
        lambda text: json.dumps(json.loads(text) | changes, indent=1, ensure_ascii=False),
    )
