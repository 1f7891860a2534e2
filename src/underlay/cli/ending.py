"""How every command ends: errors become messages and exit codes, here only."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from underlay.cli.common.lake_choice import finish_registries
from underlay.cli.common.output import say
from underlay.cli.main import drop_output
from underlay.errors import Unavailable, UnderlayError, exit_code


class _Notes(logging.Handler):
    """Prints the library's warnings about the registry as notes on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one."""
        say(f"note: {record.getMessage()}")


_NOTES = _Notes()


def run_to_its_end(act: Callable[[], None], registry_seconds: float) -> None:
    """Run a command, and wait until the registry has what it wrote. Exit codes are those of `errors.EXIT_CODES`."""
    logging.getLogger("underlay.registry").addHandler(_NOTES)
    try:
        try:
            act()
        finally:
            with suppress(KeyboardInterrupt):
                finish_registries(registry_seconds)
    except UnderlayError as error:
        _fail(str(error), exit_code(error))
    except OSError as error:
        drop_output()
        _fail(str(Unavailable(error.strerror or str(error), place=error.filename)), exit_code(Unavailable("")))
    except Exception as error:  # noqa: BLE001  # the last resort: anything that gets here is our bug
        _fail(
            f"this is a bug in Underlay: {type(error).__name__}: {error}\n"
            'Please report it with what "underlay --debug …" prints.',
            exit_code(UnderlayError("")),
        )


def _fail(message: str, code: int) -> NoReturn:
    print(f"error: {message.rstrip()}", file=sys.stderr)
    sys.exit(code)
