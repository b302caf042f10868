"""Numbers as people read them: shares, log-likelihoods, residuals, times, on all pages."""

from math import isfinite

UNKNOWN = "–"  # where there is no number


def percent(share: float, digits: int = 0) -> str:
    """Return a share in percent: "28%", or "28.5%" with one digit.

    Only none and all are "0%" and "100%": what rounding would make one of them is said to be
    under or over the last that can be written, such as "under 0.1%".
    Shares below 0 or above 1, such as a change, are written as they are.
    """
    if not isfinite(share):
        return UNKNOWN
    if share in (0, 1):
        return "100%" if share else "0%"
    text, step = f"{100 * share:,.{digits}f}", 10.0**-digits
    if share > 0 and float(text.replace(",", "")) == 0:
        return f"under {step:.{digits}f}%"
    if share < 1 and text == f"{100:.{digits}f}":
        return f"over {100 - step:.{digits}f}%"
    return f"{minus(text)}%"


def fixed(value: float, digits: int = 2) -> str:
    """Return a number with `digits` digits after the point: "−1,234.57"."""
    return minus(f"{value:,.{digits}f}") if isfinite(value) else UNKNOWN


def nats(value: float) -> str:
    """Return a log-likelihood: "−1,234.57 nats"."""
    return f"{fixed(value)} nats"


def number(value: float) -> str:
    """Return a number with three digits, such as a residual; large ones without decimals."""
    return minus(f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}")


def signed(value: float) -> str:
    """Return a number with three digits and its sign, such as a score: "+0.12", "−3.4"."""
    return minus(f"{value:+.3g}")


def minus(text: str) -> str:
    """Return a number's text with the sign that print uses; a rounded −0 has none."""
    if text.startswith("-") and not text.strip("-0.,"):
        text = text[1:]
    return text.replace("-", "−")


def duration(seconds: float) -> str:
    """Return a rough time in words: "8 s", "3 min", "2 h"."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def about(seconds: float) -> str:
    """Return a rough estimate in words: "under 1 s", "about 8 s"."""
    return duration(seconds) if seconds < 1 else f"about {duration(seconds)}"


def size(n_bytes: float) -> str:
    """Return a number of bytes in words: "3.1 MB"."""
    if n_bytes < 1000:
        return f"{n_bytes:.0f} B"
    power = 1 + (n_bytes >= 1e6) + (n_bytes >= 1e9)
    return f"{n_bytes / 1000**power:.1f} {'kMG'[power - 1]}B"
