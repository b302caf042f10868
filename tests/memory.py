"""Peak memory of a piece of code in a new process; Linux only."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc"
)

PROGRAM = """
import json
from pathlib import Path

def memory(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

def peak():  # without pages of files, which a system short of memory takes away and gives back
    return memory("VmHWM") - memory("RssFile")

{before}
Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is used now
start = memory("RssAnon")
{work}
print(json.dumps(peak() - start))
"""


def growth(before, work):
    """Return the peak memory, in bytes, of the code `work` above that after the code `before`."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before, work=work)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)
