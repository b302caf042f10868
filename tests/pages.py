"""User actions on a page in addition to `tests.ui.conftest`: drop files, close a lasso."""

import numpy as np

from appca.ui import state
from tests.ui.conftest import address, go, html

DIGITS = 1797


def give(app, *files: tuple[str, bytes]):
    """Drop files on the upload page."""
    if not any("anywhere" in one.label for one in app.get("file_uploader")):
        go(app, "data/open")
    place = next(one for one in app.get("file_uploader") if "anywhere" in one.label)
    place.set_value([(name, data, "application/octet-stream") for name, data in files])
    return app.run()


def select(app, rows, n_rows: int | None = None):
    """Select rows as if by a lasso."""
    n_rows = n_rows or (DIGITS if "Handwritten" in html(app) else 40)
    mask = np.zeros(n_rows, dtype=bool)
    mask[rows] = True
    state._server_wide()[state.token_of(mask)] = np.packbits(mask).tobytes()
    app.session_state[state.KEYS.selections] = {address(app)["data"]: mask}
    return app.run()


def table(first: str = "item 0", columns: int = 4) -> bytes:
    """Write a table of 40 rows, with names and two classes."""
    rng = np.random.default_rng(0)
    lines = [",".join(["name", "class", *(f"g{j}" for j in range(columns))])]
    for row in range(40):
        values = ",".join(f"{value:.4f}" for value in rng.normal(size=columns))
        lines.append(f"{f'item {row}' if row else first},{'ab'[row % 2]},{values}")
    return "\n".join(lines).encode()
