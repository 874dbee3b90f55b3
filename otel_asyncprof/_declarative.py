"""What a declarative configuration file says of this instrumentation."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

_logger = logging.getLogger(__name__)

OTEL_CONFIG_FILE = "OTEL_CONFIG_FILE"
NAME = "asyncprof"


def options_of_file(environ: Mapping[str, str] = os.environ) -> Mapping[str, Any]:
    """The options under ``instrumentation/development: python: asyncprof:``, ``enabled`` included; none without a file.

    OpenTelemetry reads the file too and starts what it lists. What it finds there as ``enabled: false`` it passes over,
    but opentelemetry-instrument then starts every instrumentation that is installed, as if nothing had been said.
    """
    path = environ.get(OTEL_CONFIG_FILE, "").strip()
    if not path:
        return {}
    try:
        from opentelemetry.configuration import load_config_file

        instrumentation = load_config_file(path).instrumentation_development
        python = instrumentation.python if instrumentation is not None else None
        return dict((python or {}).get(NAME) or {})
    except Exception as error:  # OpenTelemetry, which needs the file for everything, says what is wrong with it
        _logger.debug("%s could not be read: %s", OTEL_CONFIG_FILE, type(error).__name__)
        return {}
