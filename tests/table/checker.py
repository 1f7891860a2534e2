"""Check the invariants of a lake by reading its objects, with none of the code that wrote them."""

from __future__ import annotations

import base64
import itertools
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from underlay.store.store import Store

Json = dict[str, Any]
File = tuple[int, int, frozenset[int]]
"""Size, rows and deleted rows."""
State = dict[str, File]
ALIGNMENT = 64


@dataclass
class Checker:
    """Remembers what it saw: objects of a chain neither change nor vanish."""

    store: Store
    seen: dict[str, bytes] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)

    def check(self) -> None:
        """All chains of the lake."""
        keys = [found.key for found in self.store.list_objects()]
        for key, data in self.seen.items():
            assert bytes(self.store.get(key)[0]) == data, f"{key} changed"
        self.check_catalog([key for key in keys if key.startswith("_catalog/") and key.endswith(".json")])
        folders = {key.split("/_index/")[0] for key in keys if key.endswith(".root")}
        for folder in sorted(folders):
            self.check_revision(folder, [k for k in keys if k.startswith(f"{folder}/_index/") and k.endswith(".root")])

    def check_catalog(self, keys: list[str]) -> None:
        entries = self._chain("_catalog", keys, ".json")
        mappings: list[dict[str, dict[str, Any]]] = []
        for number, entry in enumerate(entries):
            assert entry["number"] == number
            mappings.append(self._mapping(entry, entries, mappings))
            tables = mappings[-1]["tables"]
            folders = [table["folder"].casefold() for table in tables.values()]
            assert len(folders) == len(set(folders))
            names = [name.casefold() for name in tables]
            assert len(names) == len(set(names))
            for table in tables.values():
                assert [r for r, found in table["revisions"].items() if found["state"] == "active"] == [table["active"]]
                assert self.store.head(f"{table['folder']}/{table['active']}/_index/{0:020}.root") is not None

    @staticmethod
    def _mapping(
        entry: dict[str, Any], entries: list[dict[str, Any]], before: list[dict[str, dict[str, Any]]]
    ) -> dict[str, dict[str, Any]]:
        """The mapping after an entry: the same from the entry that its changes are relative to and from the last."""
        if entry["format"] == 1:
            return {part: entry.get(part, {}) for part in ("tables", "dropped")}
        number = entry["number"]
        base = entry["base"] or 0
        lowest_bit = next(2**bit for bit in range(64) if number // 2**bit % 2)
        since = max(number - lowest_bit, base)
        assert entries[base]["format"] == 1
        assert entries[since]["commit_id"] == entry["since_id"]

        def changed(known: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
            made = {part: known[part] | entry["changes"].get(part, {}) for part in known}
            return {part: {name: one for name, one in found.items() if one is not None} for part, found in made.items()}

        after = changed(before[since])
        assert after == changed(before[-1]), f"entry {number} leaves out changes"
        return after

    def check_revision(self, folder: str, keys: list[str]) -> list[State]:
        """Every version of a revision; what each consists of."""
        roots = self._chain(f"{folder}/_index", keys, ".root")
        states: list[State] = []
        sources: list[dict[str, str]] = []
        fences: dict[str, int] = {}
        for version, root in enumerate(roots):
            assert root["version"] == version
            assert version == len(roots) - 1 or not root.get("terminal"), "something follows a terminal root"
            stored = self._stored(folder, root)
            assert stored == self._folded(folder, root, states), f"version {version} is not its deltas"
            states.append(stored)
            sources.append(self._folded_sources(root, sources))
            if not root.get("sources", {}).get("tree"):
                found = {record[0]: record[1] for record in root.get("sources", {}).get("journal", ())}
                assert found == sources[-1]
            assert all(root.get("fences", {}).get(job, 0) >= epoch for job, epoch in fences.items())
            fences = root.get("fences", {})
            self._check_totals(root, stored)
            assert self.states.setdefault(f"{folder}@{version}", stored) == stored
        return states

    def _chain(self, folder: str, keys: list[str], suffix: str) -> list[Json]:
        assert sorted(keys) == [f"{folder}/{number:020}{suffix}" for number in range(len(keys))], "a hole in a chain"
        objects = []
        for key in sorted(keys):
            data = bytes(self.store.get(key)[0])
            self.seen.setdefault(key, data)
            objects.append(json.loads(data))
        ids = [found["commit_id"] for found in objects]
        assert len(ids) == len(set(ids)), "a commit id occurs twice"
        assert [found["parent_id"] for found in objects] == [None, *ids][: len(ids)]
        times = [found["committed_us"] for found in objects]
        assert all(before < after for before, after in itertools.pairwise(times))
        return objects

    def _stored(self, folder: str, root: Json) -> State:
        inner = [(name, file) for ref in root.get("segments", ()) for name, file in self._segment(folder, ref)]
        names = [name for name, _ in inner]
        removed = root.get("removed", [])
        assert len(removed) == len(set(removed))
        assert set(removed) <= set(names), "a file is marked as removed that is in no segment"
        overlay = root.get("deletes", {})
        assert set(overlay) <= set(names) - set(removed)
        files = [(name, _with(file, overlay.get(name))) for name, file in inner if name not in removed]
        files += [_tail_file(file) for file in root.get("tail", ())]
        state = dict(files)
        assert len(state) == len(files), "a file occurs twice"
        layouts = {layout["id"] for layout in root.get("layouts", ())}
        assert {file[5] for file in root.get("tail", ())} <= layouts
        for name, (size, _, _) in files:
            if "/" not in name:
                found = self.store.head(f"{folder}/{name}")
                assert found is not None, f"{name} is named and does not exist"
                assert found.size_bytes == size
        return state

    def _segment(self, folder: str, ref: Json) -> list[tuple[str, File]]:
        data = bytes(self.store.get(f"{folder}/_index/segments/{ref['id']}.arrow")[0])
        assert (len(data), zlib.crc32(data)) == (ref["size_bytes"], ref["crc"])
        reader = pa.BufferReader(data)
        files = pa.ipc.open_stream(reader).read_all().to_pydict()
        reader.seek(-(-reader.tell() // ALIGNMENT) * ALIGNMENT)
        rows = iter(pa.ipc.open_stream(reader).read_all()["rows"].to_pylist())
        found = []
        for place, name in enumerate(files["locations"]):
            count = sum(next(rows) for _ in range(files["block_counts"][place]))
            found.append((name, (files["size_bytes"][place], count, _positions(files["deletes"][place]))))
        assert len(found) == ref["file_count"]
        return found

    def _folded(self, folder: str, root: Json, before: list[State]) -> State:
        delta = root["delta"]
        state = dict(before[-1]) if before else {}
        if delta.get("restored") is not None:
            return dict(before[delta["restored"]])
        for name in delta.get("removed", ()):
            del state[name]
        for name, bits in delta.get("deletes", {}).items():
            state[name] = _with(state[name], bits, is_more=True)
        count = delta.get("added_in_tail", 0)
        added = [_tail_file(file) for file in root.get("tail", ())[len(root.get("tail", ())) - count :]]
        for ref in root.get("segments", ()):
            if ref["id"] in delta.get("added_segments", ()):
                added += self._segment(folder, ref)
        assert state.keys().isdisjoint(name for name, _ in added)
        return state | dict(added)

    @staticmethod
    def _folded_sources(root: Json, before: list[dict[str, str]]) -> dict[str, str]:
        delta = root["delta"]
        start = before[-1] if before else {}
        if delta.get("restored") is not None:
            start = before[delta["restored"]]
        tokens = [record[0] for record in delta.get("sources", ()) if record[0].startswith("token:")]
        assert start.keys().isdisjoint(tokens), "a token was committed twice"
        assert all(record[2] == root["version"] for record in delta.get("sources", ()))
        return start | {record[0]: record[1] for record in delta.get("sources", ())}

    @staticmethod
    def _check_totals(root: Json, state: State) -> None:
        assert root["file_count"] == len(state)
        assert root["data_bytes"] == sum(size for size, _, _ in state.values())
        assert root["row_count"] == sum(rows - len(gone) for _, rows, gone in state.values())


def _tail_file(file: list[Any]) -> tuple[str, File]:
    rows = base64.b64decode(file[6])
    count = sum(int.from_bytes(rows[at : at + 8], "little") for at in range(0, len(rows), 8))
    gone = _positions(base64.b64decode(file[9])) if file[9] else frozenset()
    assert len(gone) == file[10]
    return file[0], (file[1], count, gone)


def _with(file: File, bits: str | None, *, is_more: bool = False) -> File:
    if bits is None:
        return file
    size, rows, before = file
    found = _positions(base64.b64decode(bits))
    assert is_more or before <= found, "an overlay forgets deleted rows"
    return size, rows, before | found


def _positions(bits: bytes | None) -> frozenset[int]:
    return frozenset(BitMap.deserialize(bits)) if bits else frozenset()
