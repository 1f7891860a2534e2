"""Random changes of a catalog, beside a plain model of what they make."""

from __future__ import annotations

from random import Random

from underlay.table.catalog.changes import (
    activate_revision,
    create_table,
    drop_table,
    rename_table,
    tag_version,
    untag_version,
)
from underlay.table.catalog.lake import LakeCatalog


def edit_at_random(lake: LakeCatalog, chance: Random) -> None:
    """One change that is possible: half of them make a table."""
    catalog = lake.catalog()
    number = catalog.number
    if not catalog.tables or chance.random() < 0.5:
        lake.change(create_table(f"d.T{number}", f"d/T{number}", f"r{number}", number))
        return
    name = chance.choice(sorted(catalog.tables))
    folder, active = catalog.tables[name].folder, catalog.tables[name].active
    match chance.randrange(8):
        case 0:
            lake.change(rename_table(name, f"e.t{number}"))
        case 1:
            lake.change(rename_table(name, name.swapcase()))
        case 2:
            lake.change(drop_table(folder, active, number))
        case 3:
            lake.change(activate_revision(folder, active, f"r{number}", number))
        case 4 if catalog.tables[name].tags:
            lake.change(untag_version(name, chance.choice(sorted(catalog.tables[name].tags))))
        case _:
            lake.change(tag_version(name, f"tag{number % 3}", active, number))
