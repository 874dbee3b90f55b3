"""Found by Python in a process that `otel-asyncprof run` has started: begins the recording, then leaves no trace."""

import os
import sys

VARIABLE = "OTEL_ASYNCPROF_RUN"  # as in otel_asyncprof.cli.settings


def _leave_path() -> None:
    own = os.path.dirname(__file__)
    sys.path[:] = [entry for entry in sys.path if entry != own]


def _import_the_other() -> None:
    """Imports the sitecustomize that Python would have found without this one."""
    own = sys.modules.pop(__name__)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault(__name__, own)


def _begin(text: str) -> None:
    try:
        from otel_asyncprof.cli import recorder
    except ImportError as error:
        _note(text, f"otel_asyncprof cannot be imported by {sys.executable}: {error}")
        return
    recorder.begin(text)


def _note(text: str, reason: str) -> None:
    import json

    with open(os.path.join(json.loads(text)["folder"], f"{os.getpid()}.note"), "w", encoding="utf-8") as file:
        file.write(reason)


_leave_path()
_text = os.environ.get(VARIABLE)
try:
    _import_the_other()
finally:
    if _text:
        try:
            _begin(_text)
        except Exception as error:  # the program is to run whatever happens here
            _note(_text, f"{type(error).__name__}: {error}")
