"""Shows the running task's span to profilers outside of the process: OTEP 4947, with the context of OTEP 4719."""

from __future__ import annotations

import asyncio.tasks
import logging
import sys
from pathlib import Path
from typing import Any

import opentelemetry.context

from otel_asyncprof import _native

_logger = logging.getLogger(__name__)

SCHEMA_VERSION = "tlsdesc_v1_dev"  # the one that readers know
_MAPPING = "OTEL_CTX"
_PUBLISHERS = ("ddtrace",)  # who publish spans of their own in the same place

_is_on = False
_published = b""


def begin(resource: bytes) -> None:
    """Publishes the resource, and from now on the span of each running task; else says in one line why not."""
    global _is_on, _published
    if owner := _other_owner():
        _logger.warning("the thread context is not published: %s does that in this process", owner)
        return
    runtime: Any = opentelemetry.context._RUNTIME_CONTEXT
    reason: str | None = "OpenTelemetry's contexts are kept elsewhere"
    if isinstance(runtime, _native.ContextVarsRuntimeContext):
        tasks: Any = asyncio.tasks
        payload = process_context(resource)
        reason = _native.thread_context_start(
            runtime._current_context,
            tasks._current_tasks,
            tasks._enter_task,
            tasks._leave_task,
            payload,
        )
    if reason:
        _logger.warning("the thread context is not published: %s", reason)
        return
    _is_on, _published = True, resource


def update(resource: bytes) -> None:
    """Publishes another resource, if it is another one."""
    global _published
    if _is_on and resource != _published:
        _native.thread_context_update(process_context(resource))
        _published = resource


def end() -> None:
    """Takes everything back."""
    global _is_on
    if _is_on:
        _native.thread_context_stop()
    _is_on = False


def after_fork_in_child(resource: bytes) -> None:
    """Nothing of the parent's is inherited; the child publishes its own."""
    global _published
    if _is_on:
        _native.thread_context_after_fork_in_child(process_context(resource))
        _published = resource


def process_context(resource: bytes) -> bytes:
    """The serialised ProcessContext: a resource, and as attributes what readers need to know of the thread context."""
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue

    attributes = [
        KeyValue(key="threadlocal.schema_version", value=AnyValue(string_value=SCHEMA_VERSION)),
        KeyValue(key="threadlocal.attribute_key_map", value=AnyValue(array_value=ArrayValue())),
    ]
    message = _field(1, resource)  # opentelemetry-proto has no class for it yet
    for attribute in attributes:
        message += _field(2, attribute.SerializeToString())
    return message


def _field(number: int, content: bytes) -> bytes:
    size, encoded = len(content), bytearray([number << 3 | 2])
    while size >= 0x80:
        encoded.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes(encoded) + bytes([size]) + content


def _other_owner() -> str:
    for name in _PUBLISHERS:
        if name in sys.modules:
            return name
    try:
        maps = Path("/proc/self/maps").read_text(errors="replace")
    except OSError:
        return ""
    return "another component" if _MAPPING in maps else ""
