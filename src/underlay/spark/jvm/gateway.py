"""The gateway to Spark's JVM: the only module that calls into py4j, which is untyped.

Every call is a round trip of 0.1 to 2 ms. So is every lookup of a package or class through py4j's `jvm` view; so we use
full class names, and a call takes a single round trip.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import active_count
from typing import Any, NewType

import msgspec
from py4j.java_gateway import JavaClass, JavaMember  # type: ignore[import-untyped]  # it has no types
from py4j.java_gateway import JavaObject as Py4jObject
from py4j.protocol import GATEWAY_SERVER_OBJECT_ID, STATIC_PREFIX, Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from underlay.errors import UnderlayError
from underlay.runtime.locks import ProcessLock

JavaObject = NewType("JavaObject", object)
"""A reference to an object of the JVM."""

_FREE_TEXT = "USER_RAISED_EXCEPTION"
"""Spark's error class whose message is free text."""

GATEWAY_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JError, OSError)
"""Errors of a call that failed in the JVM or did not reach it."""

_PARSE_ERROR = "org.apache.spark.sql.catalyst.parser.ParseException"
_RUNTIME_ERROR = "org.apache.spark.SparkRuntimeException"
_UNCHECKED = ("java.lang.RuntimeException", "java.lang.Error")
_PASSING = (*_UNCHECKED, _PARSE_ERROR)

_PROXY_LOGS = ("py4j.clientserver", "py4j.java_gateway")

_IN_CALL = "py4j.Gateway.invoke"
_OUTER_STEPS = 8
"""A thread that serves a py4j call has py4j's frame within this many outermost ones."""

_starting = ProcessLock()


class _PassedError(Py4JJavaError):  # type: ignore[misc]  # py4j has no types
    """An error that a callback raises on purpose. py4j rethrows a Py4JJavaError as its Java exception (see
    `gateway_of`); any other error would reach the user as the text of a Python traceback.
    """


def _is_news(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], _PassedError))


class Gateway:
    """Calls into one JVM, and from it. Thread-safe."""

    def __init__(self, client: object) -> None:
        self._client = client
        self._modules: dict[str, JavaObject] = {}
        self._classes: dict[str, JavaObject] = {}

    def new(self, name: str, *arguments: object) -> JavaObject:
        """A new object of this class."""
        # JavaClass itself makes no round trip, unlike `gateway.jvm.some.package.Class`, which makes one for each part.
        return JavaObject(JavaClass(name, self._client)(*arguments))

    def static(self, name: str, method: str, *arguments: object) -> JavaObject:
        """Call a static method."""
        return JavaObject(JavaMember(method, None, f"{STATIC_PREFIX}{name}", self._client)(*arguments))

    def failure(self, name: str, method: str, *arguments: object) -> str | None:
        """The exception with which a static method fails in the JVM; None when it succeeds."""
        try:
            self.static(name, method, *arguments)
        except Py4JJavaError as error:
            return str(error.java_exception.toString())
        return None

    def module(self, name: str) -> JavaObject:
        """A Scala object (its class ends in `$`)."""
        # Cached: each is a singleton in the JVM, and a lookup is a round trip.
        if name not in self._modules:
            self._modules[name] = JavaObject(getattr(JavaClass(name, self._client), "MODULE$"))
        return self._modules[name]

    def constant(self, name: str, method: str) -> JavaObject:
        """The result of a Scala object's method, which is called only once."""
        key = f"{name} {method}"
        if key not in self._modules:
            self._modules[key] = call(self.module(name), method)
        return self._modules[key]

    def java_class(self, name: str) -> JavaObject:
        """The class as an object; an array's class is named `[L…;`."""
        if name not in self._classes:
            self._classes[name] = self.static("java.lang.Class", "forName", name)
        return self._classes[name]

    @contextmanager
    def raising_errors(self, *, is_parser: bool = True) -> Iterator[None]:
        """Wraps a callback: Spark rethrows Underlay's errors with our text and without a Python traceback, and Spark's
        own errors unchanged. `is_parser`: the method declares the exception of parsers.
        """
        try:
            yield
        except UnderlayError as error:
            raise _PassedError(str(error), self._free_error(str(error))) from error
        except CapturedException as error:
            if error._origin is None:
                raise
            raise self._again(JavaObject(error._origin), is_parser=is_parser) from error
        except _PassedError:
            raise
        except Py4JJavaError as error:
            raise self._again(JavaObject(error.java_exception), is_parser=is_parser) from error

    def passed(self, error: JavaObject) -> Exception:
        """An exception of the JVM that the callback's method declares, to be raised within `raising_errors`."""
        return _PassedError(call_text(error, "getMessage"), error)

    def callers(self) -> str:
        """The JVM's stack at this callback, as text, innermost call first. Needs PySpark's pinned threads."""
        return str(self.static("py4j.Protocol", "getThrowableAsString", self.new("java.lang.Throwable")))

    def _again(self, error: JavaObject, *, is_parser: bool) -> Exception:
        """An error of the JVM, to be rethrown there. Java lets only unchecked exceptions pass, and those that the
        method declares.
        """
        passing = _PASSING if is_parser else _UNCHECKED
        if not any(self._is_a(error, name) for name in passing):
            found = self._analysis_error(error, is_parser=is_parser)
            error = found or self._free_error(call_text(error, "getMessage"))
        return self.passed(error)

    def _analysis_error(self, error: JavaObject, *, is_parser: bool) -> JavaObject | None:
        """An AnalysisException as the subclass that parsers declare, or as an unchecked exception."""
        if not self._is_a(error, "org.apache.spark.sql.AnalysisException") or call(error, "getCondition") is None:
            return None
        named = self.static("scala.jdk.javaapi.CollectionConverters", "asScala", call(error, "getMessageParameters"))
        condition, context = call(error, "getCondition"), call(error, "getQueryContext")
        parameters = call(self.module("scala.collection.immutable.Map$"), "from", named)
        if not is_parser:
            return self.new(_RUNTIME_ERROR, condition, parameters, None, context, "")
        origin = self.static("org.apache.spark.sql.catalyst.trees.CurrentOrigin", "get")
        return self.new(_PARSE_ERROR, self.module("scala.None$"), origin, condition, parameters, context)

    def _is_a(self, found: JavaObject, name: str) -> bool:
        return bool(call(self.java_class(name), "isInstance", found))

    def _free_error(self, text: str) -> JavaObject:
        named = scala_map(self, {"errorMessage": text})
        context = self.new_array("org.apache.spark.QueryContext", 0)
        return self.new(_RUNTIME_ERROR, _FREE_TEXT, named, None, context, "")

    def has_field(self, name: str, field: str) -> bool:
        """Whether a class has a public field."""
        try:
            call(self.java_class(name), "getField", field)
        except Py4JJavaError:
            return False
        return True

    def private(self, declaring: JavaObject, name: str, target: JavaObject) -> JavaObject:
        """The value of an object's private field that this class declares."""
        field = call(declaring, "getDeclaredField", name)
        call(field, "setAccessible", True)
        return call(field, "get", target)

    def callback_client(self) -> JavaObject:
        """The client with which the JVM calls Python."""
        return call(JavaObject(Py4jObject(GATEWAY_SERVER_OBJECT_ID, self._client)), "getCallbackClient")

    def new_array(self, name: str, length: int) -> JavaObject:
        """An array of this class."""
        return self.static("java.lang.reflect.Array", "newInstance", self.java_class(name), length)


def call(target: JavaObject, method: str, *arguments: object) -> JavaObject:
    """Call a method of an object."""
    return JavaObject(getattr(target, method)(*arguments))


def call_text(target: JavaObject, method: str, *arguments: object) -> str:
    """Call a method that returns a string."""
    return str(call(target, method, *arguments))


def try_text(target: JavaObject, method: str) -> str | None:
    """Call a method that returns a string; None when it fails in the JVM."""
    try:
        return call_text(target, method)
    except Py4JJavaError:
        return None


def call_number(target: JavaObject, method: str, *arguments: object) -> int:
    """Call a method that returns an integer."""
    found = call(target, method, *arguments)
    if not isinstance(found, int):
        raise TypeError(f"{method} returned {type(found).__name__}, not a whole number")
    return found


def call_numbers(target: JavaObject, method: str, *arguments: object) -> list[int]:
    """Call a method that returns an array of integers."""
    found: Any = call(target, method, *arguments)  # Any: py4j has no types
    return [int(number) for number in found]


def call_texts(target: JavaObject, method: str, *arguments: object) -> list[str]:
    """What a method that returns an array of strings returns."""
    found: Any = call(target, method, *arguments)  # Any: py4j has no types
    return [str(text) for text in found]


def is_called(thread: JavaObject) -> bool:
    """Whether a JVM thread is executing a call from Python, rather than waiting for the next one, or having ended."""
    stack: Any = call(thread, "getStackTrace")
    outermost = (str(stack[at]) for at in range(max(0, len(stack) - _OUTER_STEPS), len(stack)))
    return any(_IN_CALL in step for step in outermost)


def field_names(struct: JavaObject) -> list[str]:
    """The names of the fields of a `StructType`."""
    return [field.name for field in msgspec.json.decode(call_text(struct, "json"), type=_Struct).fields]


class _Field(msgspec.Struct):
    name: str


class _Struct(msgspec.Struct):
    fields: list[_Field]


def gateway_of(spark: SparkSession) -> Gateway:
    """The gateway of a session, through which the JVM can call back."""
    found: Any = spark.sparkContext._gateway  # Any: py4j has no types
    start: Any = ensure_callback_server_started
    with _starting:
        # PySpark starts the callback server on first use, and two threads would start two.
        start(found)
        # Without this, py4j passes the JVM the text of an exception instead of the exception itself.
        found.callback_server_parameters.propagate_java_exceptions = True
        for name in _PROXY_LOGS:  # our errors reach the user: py4j need not log them
            logging.getLogger(name).addFilter(_is_news)
        return _wrap(found._gateway_client)


_wrap = lru_cache(maxsize=8)(Gateway)


def java_session(spark: SparkSession) -> JavaObject:
    """The session in the JVM."""
    found: Any = spark
    return JavaObject(found._jsparkSession)


def data_frame(found: JavaObject, spark: SparkSession) -> DataFrame:
    """A JVM DataFrame as a Python one."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    return ClassicDataFrame(found, spark)


def frame_of_plan(plan: JavaObject, spark: SparkSession) -> DataFrame:
    """A DataFrame of a logical plan."""
    made = gateway_of(spark).static("org.apache.spark.sql.classic.Dataset", "ofRows", java_session(spark), plan)
    return data_frame(made, spark)


def scala_map(gateway: Gateway, values: dict[str, str]) -> JavaObject:
    """An immutable Scala map of strings."""
    found = call(gateway.module("scala.collection.immutable.Map$"), "empty")
    for key, value in values.items():
        found = call(found, "updated", key, value)
    return found


def scala_seq(gateway: Gateway, values: Sequence[object]) -> JavaObject:
    """A Scala Seq."""
    return gateway.static("org.apache.spark.api.python.PythonUtils", "toSeq", list(values))


def java_frame(frame: DataFrame) -> JavaObject:
    """A DataFrame in the JVM."""
    found: Any = frame
    return JavaObject(found._jdf)


def java_plan(frame: DataFrame) -> JavaObject:
    """The query execution of a DataFrame, which holds its plans."""
    return call(java_frame(frame), "queryExecution")


_MANY_THREADS = 64
_KEPT = 16


def close_forgotten(gateway: Gateway) -> None:
    """Close the least recently used connections when there are many. A thread that is alive opens a new one.

    py4j opens a connection for each JVM thread that calls Python, and never closes it when the thread ends; each
    connection holds a Python thread.
    """
    if active_count() < _MANY_THREADS:  # cheap; the connections themselves can only be counted in the JVM
        return
    client = gateway.callback_client()
    # py4j has no method for it: its deque of idle connections, newest last, and the lock for it are private.
    fields = call(call(client, "getClass"), "getSuperclass")
    connections, lock = (gateway.private(fields, name, client) for name in ("connections", "lock"))
    call(lock, "lock")
    try:
        forgotten = [call(connections, "pollFirst") for _ in range(call_number(connections, "size") - _KEPT)]
    finally:
        call(lock, "unlock")
    for one in forgotten:
        call(one, "shutdown")
