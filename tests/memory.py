"""What a fit takes at its peak, in a process of its own.

`python -m tests.memory MODEL SETTINGS N D` prints by how much the memory of the process grew while
it fitted N x D float32 rows, over the bytes of the rows; `grown` calls it.
"""

import json
import subprocess
import sys
from typing import Any

import numpy as np

import appca
from benchmarks.measure import FORGET_PEAK, memory

FEW = 500  # rows of a first fit, which loads libraries and compiled code


def main() -> None:
    """Measure and print."""
    name, settings, shape = (
        sys.argv[1],
        json.loads(sys.argv[2]),
        (int(sys.argv[3]), int(sys.argv[4])),
    )
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape, dtype=np.float32)
    scores = 5.0 * rng.standard_normal((shape[0], 3)) * (rng.random((shape[0], 3)) < 0.5)
    X[:, :3] += scores.astype(np.float32)
    model = getattr(appca, name)(**settings)
    model.fit(X[:FEW])
    FORGET_PEAK.write_text("5")
    before = memory("VmRSS")
    model.fit(X)
    sys.stdout.write(str((memory("VmHWM") - before) / X.nbytes))


def grown(model: str, shape: tuple[int, int], **settings: Any) -> float:
    """Growth of the peak while `appca.<model>(**settings)` is fitted to rows, over their bytes."""
    given = [model, json.dumps(settings), *map(str, shape)]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.memory", *given], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return float(ran.stdout)


if __name__ == "__main__":
    main()
