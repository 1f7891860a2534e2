"""Whether rows that fit one definition may not fit another."""

from __future__ import annotations

from underlay.index.root import Definition
from underlay.schema.record import from_record


def is_stricter(before: Definition, after: Definition) -> bool:
    """Whether files written for `before` must be looked at again for `after`.

    So it is when key, partitions, a type or a default changed, or when a column that may be null, or is not there, is
    required after. Other new, renamed and dropped columns, order and comments do not matter.
    """
    if before.key != after.key or before.partition_by != after.partition_by:
        return True
    old, new = from_record(before.schema).leaf_by_id, from_record(after.schema).leaf_by_id
    for field, leaf in new.items():
        known = old.get(field)
        if known is None:
            if leaf.is_required and leaf.default is None:
                return True
        elif (leaf.type, leaf.default) != (known.type, known.default) or leaf.is_required > known.is_required:
            return True
    return False
