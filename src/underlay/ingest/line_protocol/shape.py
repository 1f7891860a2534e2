"""One pattern for all lines that are written alike: most senders repeat the same names in the same order.

It matches a line only if the plain parser would find the same key and the same values in it; what it does not match,
the plain parser reads.
"""

from __future__ import annotations

import re
from functools import lru_cache

from underlay.ingest.line_protocol.line import END_PATTERN, NAME_PATTERNS, LineKey
from underlay.ingest.line_protocol.values import PATTERNS, Flavour

_MOST_VALUES = 200
"""Python's patterns get slow to make with more groups."""
_KEPT = 1024


@lru_cache(_KEPT)
def shape_pattern(key: LineKey, flavour: Flavour) -> re.Pattern[bytes] | None:
    """The pattern of lines with this key: its groups are the values, in order. None if no pattern can say it."""
    forms = PATTERNS[flavour]
    if len(key.tags) + len(key.fields) > _MOST_VALUES or any(form not in forms for _, form in key.fields):
        return None
    tag = rb"(" + NAME_PATTERNS[flavour] + (rb"|)" if flavour is Flavour.QUESTDB else rb")")  # QuestDB's may be empty
    parts = [re.escape(key.measurement)]
    parts += [b"," + re.escape(name) + b"=" + tag for name in key.tags]
    for at, (name, form) in enumerate(key.fields):
        parts.append((b" ++" if at == 0 else b",") + re.escape(name) + b"=(" + forms[form] + b")")
    if key.time is not None:
        parts.append(rb" ++([+-]?[0-9]{1,19})" + key.time)
    return re.compile(b"".join((*parts, END_PATTERN)))
