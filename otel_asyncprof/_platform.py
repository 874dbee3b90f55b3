"""Where the profiler works."""

import platform
import sys
from typing import Any

SUPPORTED_VERSIONS = ((3, 11), (3, 12), (3, 13), (3, 14), (3, 15))

_SWITCH_OFF = "OTEL_ASYNCPROF_ENABLED=false switches it off"


def unsupported_reason() -> str | None:
    """Why this interpreter or platform cannot be profiled, or not any more; None when it can."""
    if platform.python_implementation() != "CPython":
        return f"it works on CPython only, this is {platform.python_implementation()}; {_SWITCH_OFF}"
    if sys.version_info[:2] not in SUPPORTED_VERSIONS:
        known = ", ".join(f"{major}.{minor}" for major, minor in SUPPORTED_VERSIONS)
        return f"CPython {platform.python_version()} is not supported; use one that is ({known})"
    if sys.platform != "linux" or sys.maxsize < 1 << 32:
        return f"it works on 64-bit Linux only, this is {sys.platform} {platform.machine()}; {_SWITCH_OFF}"
    # Not from sysconfig: its data are missing in minimal installations and bundled applications.
    if "t" in sys.abiflags:
        return "the free-threaded build of CPython is not supported; use the default build"
    if hasattr(sys, "gettotalrefcount") or hasattr(sys, "getobjects"):
        return "debug and trace-refs builds of CPython are not supported; use the default build"
    jit: Any = getattr(sys, "_jit", None)  # since 3.14
    if jit is not None and jit.is_enabled():
        return "CPython's JIT compiler is not supported; PYTHON_JIT=0 switches it off"
    if sys.is_finalizing():
        return "the interpreter is ending"
    return None


def unloaded_reason(error: ImportError | None) -> str:
    """Why the extension is not there; without an error it belongs to another interpreter of this process."""
    if error is None or "subinterpreters" in str(error):  # in our words or in CPython's
        return "subinterpreters are not supported; start it in the main interpreter"
    if "second Py_Initialize()" in str(error):
        return "the interpreter was finalized and initialized again, which is not supported; use the first one"
    return f"its extension cannot be loaded ({error}); install otel-asyncprof anew, with the pip of this interpreter"
