"""Make the files of this folder: ``python sample_data/make.py``.

Every random number comes from a fixed seed; the same NumPy gives the same files. With
``--montage FILE`` only a sheet of turntable views is drawn, to look at.
"""

import argparse
from pathlib import Path

import numpy as np
import recording
from render import SIDE, view
from solids import SOLIDS

HERE = Path(__file__).resolve().parent
VIEWS, DEGREES = 72, 5
POINTS, SPREAD, NOISE = 300, (2.0, 1.5, 1.0), 0.08


def planes(rng: np.random.Generator) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Figure 1 of the paper: points near three planes, each spanned by two of three directions.

    Returns
    -------
    points : ndarray of shape (900, 3)
        Shuffled, so that the order of rows tells nothing.
    names : list of str
        The plane of each point: "1 and 2", "1 and 3" or "2 and 3".
    directions : ndarray of shape (3, 3)
        The orthonormal directions in columns.
    """
    directions, triangle = np.linalg.qr(rng.standard_normal((3, 3)))
    directions *= np.sign(np.diag(triangle))
    parts, names = [], []
    for pair in ((0, 1), (0, 2), (1, 2)):
        latent = rng.standard_normal((POINTS, 2)) * np.take(SPREAD, pair)
        parts.append(latent @ directions[:, pair].T)
        names += [f"{pair[0] + 1} and {pair[1] + 1}"] * POINTS
    points = np.concatenate(parts) + NOISE * rng.standard_normal((3 * POINTS, 3))
    order = rng.permutation(len(points))
    return points[order], [names[row] for row in order], directions


def turntable(degrees: range) -> np.ndarray:
    """Return all solids at the given angles: uint8 (solids, angles, 32, 32)."""
    return np.array(
        [[view(solid.shape, angle, solid.albedo) for angle in degrees] for solid in SOLIDS.values()]
    )


def write_planes() -> None:
    """Write planes.csv."""
    points, names, _ = planes(np.random.default_rng(1))
    lines = ["id,x,y,z,plane"]
    lines += [
        f"point-{row},{x:.4f},{y:.4f},{z:.4f},{name}"
        for row, ((x, y, z), name) in enumerate(zip(points, names, strict=True))
    ]
    (HERE / "planes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_turntable() -> None:
    """Write turntable.npz; takes a minute or two."""
    images = turntable(range(0, 360, DEGREES))
    np.savez_compressed(
        HERE / "turntable.npz",
        images=images.reshape(-1, SIDE, SIDE),
        solid=np.repeat(list(SOLIDS), VIEWS),
        angle=np.tile(np.arange(0, 360, DEGREES, dtype=np.int16), len(SOLIDS)),
    )


def write_brain() -> None:
    """Write brain.npz and its events.tsv."""
    np.savez_compressed(
        HERE / "brain.npz", **recording.recording(np.random.default_rng(2))._asdict()
    )
    lines = ["onset\tduration\ttrial_type"]
    lines += [f"{onset:g}\t{duration:g}\t{name}" for onset, duration, name in recording.events()]
    (HERE / "brain_events.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_montage(path: Path) -> None:
    """Draw every solid at every fourth angle onto one sheet, enlarged twice."""
    from PIL import Image

    tiles = np.pad(turntable(range(0, 360, 4 * DEGREES)), ((0, 0), (0, 0), (1, 1), (1, 1)))
    solids, angles, height, width = tiles.shape
    sheet = tiles.swapaxes(1, 2).reshape(solids * height, angles * width)
    Image.fromarray(sheet).resize((2 * sheet.shape[1], 2 * sheet.shape[0])).save(path)


def main() -> None:
    """Make all files, or draw the sheet."""
    parser = argparse.ArgumentParser(description="Make the files of sample_data.")
    parser.add_argument("--montage", type=Path, help="draw a sheet of turntable views here instead")
    sheet = parser.parse_args().montage
    if sheet:
        write_montage(sheet)
        return
    write_planes()
    write_brain()
    write_turntable()


if __name__ == "__main__":
    main()
