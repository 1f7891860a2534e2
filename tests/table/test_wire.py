"""R1 over HTTP: responses that are dropped on the wire."""

from __future__ import annotations

import pytest

from tests.store.proxy import Action, Answer, DropRequest, DropResponse, Forward, Seen, proxy
from tests.store.servers import S3Server
from tests.store.servers import moto as moto
from tests.table.checker import Checker
from tests.table.entries import append, new_table, surroundings
from underlay.table.versions.revision import Revision


@pytest.mark.parametrize("max_retries", [0, 3])
@pytest.mark.parametrize(
    "fault", [DropResponse(), DropRequest(), Answer(503), Answer(409, "<Code>ConditionalRequestConflict</Code>")]
)
def test_an_append_whose_root_is_disturbed_on_the_wire_happens_once(moto: S3Server, fault: Action, max_retries: int):
    _, revision = new_table(moto.open())
    folder = revision.store.url.rsplit("/", 1)[1]
    faults = iter([fault])

    def choose(seen: Seen) -> Action:
        is_root = seen[0] == "PUT" and seen[1].endswith(".root")
        return next(faults, Forward()) if is_root else Forward()

    with proxy(moto.endpoint, choose) as front:
        store = moto.through(front.endpoint).open(folder, max_retries=max_retries)
        root = append(Revision(store, "taxi/trips", revision.id, surroundings()), "new")
        attempts = [seen for seen in front.seen if seen[0] == "PUT" and seen[1].endswith(".root")]
    assert len(attempts) >= 2
    assert revision.head().commit_id == root.commit_id
    assert revision.head().version == 1
    Checker(revision.store).check()
