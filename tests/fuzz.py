"""Random damage to sidecars and footers: whatever comes in, only `UnderlayError` comes out.

    python -m tests.fuzz --seconds 300 [--seed N]

Each input is a genuine file with a few bytes changed, cut, repeated or taken from another file; checksums are mended
half of the time, so that what lies behind them is reached too. After every input everything that reads is asked. The
largest allocation is compared with the input's size.
"""

from __future__ import annotations

import argparse
import random
import struct
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

from tests.genuine import conversions, parquet_files, sidecars
from underlay.errors import UnderlayError
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.splice import SplicePart, shift_offsets, splice
from underlay.parquet.footer.tail import load_footer
from underlay.parquet.thrift.tree import parse
from underlay.pm.convert.build import from_parquet
from underlay.pm.convert.footer import convert
from underlay.pm.dump import dump
from underlay.pm.format.blocks import block_value, inline_bloom
from underlay.pm.format.checksum import checksum
from underlay.pm.format.encode import append
from underlay.pm.format.footers import walk
from underlay.pm.format.sidecar import committed_size, decode
from underlay.pm.format.statistics import byte_bounds
from underlay.pm.prune.bounds import show_bounds
from underlay.pm.prune.columns import SidecarColumns
from underlay.pm.prune.prune import chunk_ranges, prune
from underlay.pm.read.synthesise import to_footer
from underlay.prune import And, Compare, In, IsNull, Op

MAX_INPUT_BYTES = 20_000
ALLOWED_ALLOCATION = 200
"""Bytes that may be allocated for each byte of input, on top of a fixed amount for what is made once."""
FIXED_ALLOCATION = 4 << 20

INTERESTING = (0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1)


def mutate(pick: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """`data` with one to four pieces of damage."""
    out = bytearray(data)
    for _ in range(pick.randint(1, 4)):
        at = pick.randrange(len(out)) if out else 0
        match pick.randrange(7):
            case 0 if out:
                out[at] ^= 1 << pick.randrange(8)
            case 1 if out:
                out[at] = pick.randrange(256)
            case 2:
                kind = pick.choice(("<B", "<H", "<I", "<Q"))
                value = pick.choice(INTERESTING) % (1 << 8 * struct.calcsize(kind))
                out[at : at + struct.calcsize(kind)] = struct.pack(kind, value)
            case 3:
                del out[at : at + pick.randint(1, 64)]
            case 4:
                out[at:at] = out[at : at + pick.randint(1, 64)]
            case 5:
                other = pick.choice(others)
                begin = pick.randrange(len(other))
                out[at : at + 32] = other[begin : begin + 32]
            case 6:
                del out[at:]
    return bytes(out)


def mend(pick: random.Random, data: bytes) -> bytes:
    """Half of the time a sidecar whose committed size and checksum are right again."""
    if len(data) < 80 or pick.random() < 0.5:
        return data
    out = bytearray(data)
    struct.pack_into("<Q", out, 0, len(out))
    struct.pack_into("<I", out, len(out) - 8, checksum(out, len(out) - 8))
    return bytes(out)


def read_everything(data: bytes) -> None:
    """Ask a sidecar everything that needs no Parquet file."""
    for footer in walk(data, min(committed_size(data), len(data))):
        decode(data, size=footer.size, check=False)
    sidecar = decode(data)
    names = {(column.name,) for column in sidecar.columns}
    for index in range(sidecar.column_count):
        byte_bounds(sidecar, index, "min")
        show_bounds(sidecar, index)
        for row_group in range(min(sidecar.row_group_count, 4)):
            inline_bloom(sidecar, row_group, index)
    for row_group in range(min(sidecar.row_group_count, 4)):
        block_value(sidecar, row_group)
    for name in list(names)[:20]:
        for where in (Compare(name, Op.GE, 5), In(name, ("a", "2024-01-01")), IsNull(name)):
            ask(lambda where=where: prune(sidecar, And((where,))))
    assert len(SidecarColumns(sidecar)) == len(names)
    ask(lambda: chunk_ranges(sidecar, range(sidecar.row_group_count)))
    ask(lambda: append(sidecar, list(range(sidecar.row_group_count)), sidecar.version_fields()))
    dump(sidecar)
    to_footer(sidecar)


def ask(question: Callable[[], object]) -> None:
    """A question that may be refused on its own."""
    with suppress(UnderlayError):
        question()


def read_footer(data: bytes) -> None:
    """Ask a Parquet footer everything."""
    tree = parse(data)
    assert tree.write({}) == data
    footer = Footer(tree)
    assert footer.chunks.codec.shape == (footer.row_group_count, footer.column_count)
    for generation in ("9.4", "10"):
        ask(lambda generation=generation: decode(convert(footer, 1000, generation=generation)))
    ask(lambda: Footer.parse(shift_offsets(footer, 1000)).chunks)
    ask(lambda: splice([SplicePart(footer, range(footer.row_group_count), 0), SplicePart(footer, (0,), 64)]))


def read_parquet(data: bytes) -> None:
    """Build the sidecar of a Parquet file, bounds of the designated timestamp decoded from its pages where needed."""
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        file.write(data)
        file.flush()
        decode(from_parquet(file.name))


def seal_again(pick: random.Random, data: bytes) -> bytes:
    """Most of the time a file that ends as a Parquet file does, its footer's length being what it was."""
    return data if pick.random() < 0.1 else data[:-8] + data[-8:-4] + b"PAR1"


Target = tuple[str, list[bytes], Callable[[bytes], None], Callable[[random.Random, bytes], bytes]]


def targets() -> list[Target]:
    """(name, genuine inputs, how they are read, how they are mended)."""
    pms = [data for path in sidecars() if 80 <= len(data := path.read_bytes()) <= MAX_INPUT_BYTES]
    paths = [path for path in parquet_files() if "parquet-testing" in str(path)] + [p for p, _, _ in conversions()]
    footers = [raw for path in paths if len(raw := load_footer(path).raw) <= MAX_INPUT_BYTES]
    files = [data for path in paths if "sorted" in path.name and len(data := path.read_bytes()) <= MAX_INPUT_BYTES]
    return [
        ("sidecar", pms, read_everything, mend),
        ("footer", footers, read_footer, lambda _, data: data),
        ("parquet", files, read_parquet, seal_again),
    ]


def fuzz(seed: int, *, is_done: Callable[[], bool], measure: bool = False) -> Counter[str]:
    """Damage and read until done; how often each target was read to the end and refused."""
    pick = random.Random(seed)
    counts: Counter[str] = Counter()
    for name, inputs, read, mended in _turns(pick, targets()):
        if is_done():
            return counts
        data = mended(pick, mutate(pick, pick.choice(inputs), inputs))
        counts[name] += 1
        try:
            _read_bounded(read, data) if measure else read(data)
        except UnderlayError as error:
            counts[f"{name}: {error.code}"] += 1
        except Exception:
            print(f"seed {seed}, input {data.hex()}")
            raise
    raise AssertionError("the turns never end")


def _turns(pick: random.Random, choices: list[Target]) -> Iterator[Target]:
    while True:
        yield pick.choice(choices)


def _read_bounded(read: Callable[[bytes], None], data: bytes) -> None:
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        read(data)
    finally:
        used = tracemalloc.get_traced_memory()[1] - before
        assert used <= FIXED_ALLOCATION + ALLOWED_ALLOCATION * len(data), f"{used} bytes for {len(data)}"


def main() -> None:
    """Run for some time and say what was seen."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    counts = fuzz(options.seed, is_done=lambda: time.monotonic() > deadline)
    print(f"seed {options.seed}")
    for name, count in sorted(counts.items()):
        print(f"{count:9} {name}")


if __name__ == "__main__":
    main()
