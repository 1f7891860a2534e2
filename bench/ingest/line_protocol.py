"""How many lines of line protocol are parsed in a second, by shape? CPU time of one core; the result is checked.

python -m bench.ingest.line_protocol --lines 200000
"""

from __future__ import annotations

import argparse
import random
import time

from underlay.ingest.line_protocol.parse import parse_lines
from underlay.ingest.line_protocol.values import Flavour

_SECOND = 1_700_000_000_000_000_000


def plain(at: int, draw: random.Random) -> str:
    """Two tags and four fields."""
    return (
        f"cpu,host=host_{at % 100},region=eu-{at % 3} usage={draw.random() * 100},n={at}i,idle={draw.random()},ok=t "
        f"{_SECOND + at * 1000}"
    )


def mixed(at: int, draw: random.Random) -> str:
    """Seven measurements in turn, with escapes and texts."""
    fields = f'usage={draw.random() * 100},s="text {at} a, b",n={at}i'
    return f"m{at % 7},host=ho\\ st_{at % 100} {fields} {_SECOND + at * 1000}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=200_000)
    count = parser.parse_args().lines
    for shape in (plain, mixed):
        draw = random.Random(7)
        body = "\n".join(shape(at, draw) for at in range(count)).encode()
        for flavour in Flavour:
            begin = time.process_time()
            found = parse_lines(body, flavour)
            seconds = time.process_time() - begin
            assert found.row_count == count
            assert not found.problems
            speed = f"{count / seconds:12,.0f} rows/s {len(body) / seconds / 1e6:6.1f} MB/s"
            print(f"{shape.__name__:6} {flavour.value:9} {speed}")


if __name__ == "__main__":
    main()
