"""What the sampler is told to do, as the extension's flags."""

import logging
import platform
from collections.abc import Iterable, Mapping

from otel_asyncprof import _native

from .errors import ProfilerUnavailable

_logger = logging.getLogger(__name__)

_REPORT = "a newer otel-asyncprof may know it, else please report this line"


def trusted(checks: Mapping[str, str]) -> int:
    """The features that may be trusted after the self-check; without threads there is nothing to profile."""
    failed = {feature: reason for feature, reason in checks.items() if reason}
    version = platform.python_version()
    if "threads" in failed:
        raise ProfilerUnavailable(
            f"the memory of CPython {version} is not laid out as expected: {failed['threads']}; {_REPORT}"
        )
    if failed:
        what = "; ".join(f"no {feature}: {reason}" for feature, reason in failed.items())
        _logger.warning("otel_asyncprof on CPython %s goes on with less: %s; %s", version, what, _REPORT)
    features = {"tasks": _native.FEATURE_TASKS, "awaiters": _native.FEATURE_AWAITERS, "spans": _native.FEATURE_SPANS}
    return sum(flag for feature, flag in features.items() if feature not in failed)


def attribute_flags(names: Iterable[str]) -> int:
    """The attributes that a sample is to have."""
    flags = {
        "thread.name": _native.ATTRIBUTE_THREAD_NAME,
        "asyncprof.state": _native.ATTRIBUTE_STATE,
        "thread.id": _native.ATTRIBUTE_THREAD_ID,
        "asyncio.task.name": _native.ATTRIBUTE_TASK_NAME,
        "asyncprof.local_root.name": _native.ATTRIBUTE_LOCAL_ROOT_NAME,
    }
    return sum(flags[name] for name in names)
