"""Count the lines of Python and JavaScript of the product: ``python -m benchmarks.lines``.

Blank lines, comments and docstrings count. With a commit as argument, count that commit's files.
"""

import subprocess
import sys
from collections import Counter
from pathlib import PurePath

COUNTED = {".py": "Python", ".js": "JavaScript"}
PLACES = ["app.py", "pages", "appca"]


def lines(commit: str) -> Counter[str]:
    """Return the number of lines of each language at a commit."""
    listing = ["git", "ls-tree", "-r", "--name-only", commit, "--", *PLACES]
    names = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.splitlines()
    total: Counter[str] = Counter()
    for name in names:
        if (language := COUNTED.get(PurePath(name).suffix)) is not None:
            show = ["git", "show", f"{commit}:{name}"]
            text = subprocess.run(show, capture_output=True, check=True)
            total[language] += text.stdout.count(b"\n")
    return total


if __name__ == "__main__":
    counts = lines(sys.argv[1] if len(sys.argv) > 1 else "HEAD")
    for language, number in counts.items():
        print(f"{language:<12}{number:>8,}")
    print(f"{'together':<12}{counts.total():>8,}")
