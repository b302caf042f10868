"""Small pieces of sentences for people."""

_JOINER = "\u200d"  # between the parts of an emoji; nothing else that is not seen may stay


def shortened(text: object, limit: int = 40) -> str:
    """
    Cut a text from a file to what fits into a sentence, on one line.

    Signs that are not seen, or that turn the direction of what follows, are shown as "�": a name
    must not change how the sentence around it reads.
    """
    flat = " ".join(str(text).split())
    cut = flat if len(flat) <= limit else flat[: limit - 1] + "…"
    return "".join(sign if sign.isprintable() or sign == _JOINER else "\ufffd" for sign in cut)


def counted(n: int, noun: str) -> str:
    """Return "1 row" or "2,000 rows"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
