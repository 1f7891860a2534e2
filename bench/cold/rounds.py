"""Fresh processes of every system in one world, turn by turn."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from bench.cold.world import COUNT, PREPARE, Told, run_cold
from bench.common.questions import digest, make_questions
from bench.systems.placed import OWN, PEERS


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdRounds:
    """Measurements in the world that the file `world` describes. Disk caches are below `folder`."""

    world: Path
    folder: Path
    file_count: int
    warm: dict[str, list[float]] = field(default_factory=dict)
    """Seconds of ours with a disk cache that holds what the question needs."""
    imports: dict[str, list[float]] = field(default_factory=dict)
    """Seconds that imports took before."""

    def prepare(self, name: str) -> None:
        """Fill the registry that this system of ours has."""
        with self._empty() as cache:
            self._check(name, run_cold(self.world, name, self.file_count, cache=Path(cache), do=PREPARE))

    def sample(self, rounds: int) -> dict[str, list[float]]:
        """Seconds of each system with empty disk caches; those of warm ones, and of imports, are kept."""
        seconds: dict[str, list[float]] = {}
        for name in OWN:
            self._ask(name, self._warm_cache(name))
        for _ in range(rounds):
            for name in OWN:
                with self._empty() as cache:
                    found = self._ask(name, Path(cache))
                seconds.setdefault(name, []).append(found.seconds)
                self.imports.setdefault(name, []).append(found.import_seconds)
                self.warm.setdefault(name, []).append(self._ask(name, self._warm_cache(name)).seconds)
            for name in PEERS:
                found = self._ask(name, self.folder)
                seconds.setdefault(name, []).append(found.seconds)
                self.imports.setdefault(name, []).append(found.import_seconds)
        return seconds

    def count(self, name: str, *, is_warm: bool) -> Told:
        """Work and statements of a system of ours."""
        with self._empty() as empty:
            cache = self._warm_cache(name) if is_warm else Path(empty)
            return self._check(name, run_cold(self.world, name, self.file_count, cache=cache, do=COUNT))

    def _ask(self, name: str, cache: Path) -> Told:
        return self._check(name, run_cold(self.world, name, self.file_count, cache=cache))

    def _check(self, name: str, found: Told) -> Told:
        """Refuse to time another answer than the one the generator knows."""
        expected = make_questions(self.file_count)["time"].expected
        if expected is None or found.digest != digest(expected):
            raise AssertionError(f"{name}: another answer: {found.digest}")
        return found

    def _warm_cache(self, name: str) -> Path:
        return self.folder / "caches" / name

    def _empty(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True)
