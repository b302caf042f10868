"""Stored JSON files changed by somebody who knows how to make their digests."""

import json
from collections.abc import Callable
from pathlib import Path

from appca.storage.files import DIGEST, as_json


def reseal(file: Path) -> None:
    """Give a file the digest of its facts, if it has any."""
    rewrite(file)


def rewrite(file: Path, **changes: object) -> None:
    """Change some of the facts in a file, and its digest."""
    facts = json.loads(file.read_text(encoding="utf-8"))
    facts.pop(DIGEST, None)
    file.write_bytes(as_json(facts | changes))


def forge(file: Path, change: Callable[[str], str]) -> None:
    """Change the text of a file, and its digest."""
    facts = json.loads(file.read_text(encoding="utf-8"))
    facts.pop(DIGEST, None)
    file.write_bytes(as_json(json.loads(change(json.dumps(facts, indent=1, ensure_ascii=False)))))
