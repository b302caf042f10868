"""Small pieces of sentences for people."""


def shortened(text: object, limit: int = 40) -> str:
    """Cut a text from a file to what fits into a sentence, on one line."""
    flat = " ".join(str(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def counted(n: int, noun: str) -> str:
    """Return "1 row" or "2,000 rows"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
