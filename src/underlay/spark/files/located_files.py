"""Passes files to the JVM together with their preferred hosts.

Hadoop has a class for that, `LocatedFileStatus`, which cannot be read from bytes. So files are passed as usual, with
the host in place of the owner, and a function that we compose in the JVM turns them into located ones: `file -> new
LocatedFileStatus(file, locations.get(file.getOwner()))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from underlay.spark.files.file_statuses import STATUS, hand_over
from underlay.spark.files.preferred_hosts import RANGE_BYTES, Hosts, hosts_of_ranges, preferred_hosts
from underlay.spark.jvm.gateway import Gateway, JavaObject, call

_LOCATED = "org.apache.hadoop.fs.LocatedFileStatus"
_LOCATION = "org.apache.hadoop.fs.BlockLocation"
_HANDLES = "java.lang.invoke.MethodHandles"
_ARRAY = "java.lang.reflect.Array"
_MOST_RANGES = 64
_END = 1 << 62
"""Beyond the end of any file."""


def hand_over_located(
    gateway: Gateway, paths: Sequence[str], sizes: Sequence[int], numbers: Sequence[int] | None, hosts: Hosts
) -> JavaObject:
    """A `FileStatus[]` like that of `hand_over`, with locations. Takes a few more round trips, and some for new
    hosts.
    """
    count = len(paths)
    plain = hand_over(gateway, paths, sizes, numbers, owners=preferred_hosts(paths, hosts))
    objects = gateway.new_array("java.lang.Object", count)
    _copy(gateway, plain, objects, count)
    found = gateway.new("java.util.ArrayList", gateway.static("java.util.Arrays", "asList", objects))
    call(found, "replaceAll", _locating(gateway, tuple(sorted(hosts.items())), _range_count(max(sizes, default=0))))
    array = gateway.new_array(STATUS, count)
    _copy(gateway, call(found, "toArray"), array, count)
    return array


def _copy(gateway: Gateway, source: JavaObject, target: JavaObject, count: int) -> None:
    gateway.static("java.lang.System", "arraycopy", source, 0, target, 0, count)


def _range_count(size: int) -> int:
    """How many ranges a file of this size has, rounded to a power of two: sizes differ from query to query."""
    needed = -(-size // RANGE_BYTES)
    return min(1 << max(needed - 1, 0).bit_length(), _MOST_RANGES)


@lru_cache(maxsize=8)
def _locating(gateway: Gateway, hosts: tuple[tuple[str, float], ...], ranges: int) -> JavaObject:
    """The function for these hosts, as a `UnaryOperator`."""
    locations = gateway.new("java.util.HashMap")
    names = {host: _array(gateway, "java.lang.String", [host]) for host, _ in hosts}
    for host in names:
        wanted = hosts_of_ranges(host, dict(hosts), ranges)
        call(locations, "put", host, _array(gateway, _LOCATION, _blocks(gateway, [names[one] for one in wanted])))
    located = _constructing(gateway, locations)
    operator = gateway.java_class("java.util.function.UnaryOperator")
    return gateway.static("java.lang.invoke.MethodHandleProxies", "asInterfaceInstance", operator, located)


def _blocks(gateway: Gateway, hosts: Sequence[JavaObject]) -> list[JavaObject]:
    """A block location for each range; the last one has no end."""
    last = len(hosts) - 1
    return [
        gateway.new(_LOCATION, one, one, at * RANGE_BYTES, _END if at == last else RANGE_BYTES)
        for at, one in enumerate(hosts)
    ]


def _constructing(gateway: Gateway, locations: JavaObject) -> JavaObject:
    """The method handle of the function."""
    lookup = gateway.static(_HANDLES, "publicLookup")
    status, located, location = (f"L{name.replace('.', '/')};" for name in (STATUS, _LOCATED, _LOCATION))
    owner_type = _type(gateway, "()Ljava/lang/String;")
    owner = call(lookup, "findVirtual", gateway.java_class(STATUS), "getOwner", owner_type)
    get_type = _type(gateway, "(Ljava/lang/Object;)Ljava/lang/Object;")
    get = call(call(lookup, "findVirtual", gateway.java_class("java.util.Map"), "get", get_type), "bindTo", locations)
    find = call(get, "asType", _type(gateway, f"(Ljava/lang/String;)[{location}"))
    made = call(lookup, "findConstructor", gateway.java_class(_LOCATED), _type(gateway, f"({status}[{location})V"))
    twice = gateway.static(
        _HANDLES, "collectArguments", made, 1, gateway.static(_HANDLES, "filterReturnValue", owner, find)
    )
    both_first = gateway.static(_ARRAY, "newInstance", call(gateway.java_class("[I"), "getComponentType"), 2)  # zeros
    return gateway.static(_HANDLES, "permuteArguments", twice, _type(gateway, f"({status}){located}"), both_first)


def _type(gateway: Gateway, descriptor: str) -> JavaObject:
    loader = call(gateway.java_class(STATUS), "getClassLoader")
    return gateway.static("java.lang.invoke.MethodType", "fromMethodDescriptorString", descriptor, loader)


def _array(gateway: Gateway, name: str, items: Sequence[object]) -> JavaObject:
    found = gateway.new_array(name, len(items))
    for at, item in enumerate(items):
        gateway.static(_ARRAY, "set", found, at, item)
    return found
