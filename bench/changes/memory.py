"""Prints the peak memory of this process during an upsert of spread rows, above what it had before, in bytes.

python -m bench.changes.memory FOLDER ROWS CHANGED
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.changes.rows import Scale, spread
from bench.changes.systems import Ours


def peak_bytes() -> int:
    """The most memory that this process ever had, as Linux counts it."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))


def main() -> None:
    folder, rows, changed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    system = Ours(folder)
    source = spread(Scale(files=1, blocks=1, block_rows=rows, changed=changed), 3)
    system.table.upsert(source.slice(0, 1))
    before = peak_bytes()
    system.upsert(source)
    print(peak_bytes() - before)


if __name__ == "__main__":
    main()
