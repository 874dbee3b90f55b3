"""Every environment variable that is this package's own, as a constant that holds its name.

``opentelemetry-instrument`` makes a command-line flag of each: ``--asyncprof_rate``, ``--profiles_exporter`` and so on.
An empty value means that the variable is not set. ``OTEL_SDK_DISABLED``, ``OTEL_SERVICE_NAME``,
``OTEL_RESOURCE_ATTRIBUTES`` and the ``OTEL_EXPORTER_OTLP_*`` variables without ``PROFILES`` are the OpenTelemetry SDK's
and mean here what they mean there.
"""

OTEL_PROFILES_EXPORTER = "OTEL_PROFILES_EXPORTER"
"""Where profiles go: ``otlp`` (default), ``otlp_proto_http``, ``otlp_proto_grpc``, ``console``, ``file``, ``none``, or
the name of an installed entry point of the group ``opentelemetry_profiles_exporter``."""

OTEL_ASYNCPROF_ENABLED = "OTEL_ASYNCPROF_ENABLED"
"""``false`` leaves the process untouched. Default: ``true``."""

OTEL_ASYNCPROF_RATE = "OTEL_ASYNCPROF_RATE"
"""Ticks per second, 1 to 1000. Default: 100."""

OTEL_ASYNCPROF_CPU_BUDGET = "OTEL_ASYNCPROF_CPU_BUDGET"
"""The share of one core that profiling may use, 0.001 to 1. Default: 0.01."""

OTEL_ASYNCPROF_INTERVAL = "OTEL_ASYNCPROF_INTERVAL"
"""Time between two exports, 0.1 to 3600 seconds; ``500ms`` and ``10s`` are understood. Default: 10."""

OTEL_ASYNCPROF_MAX_FRAMES = "OTEL_ASYNCPROF_MAX_FRAMES"
"""Frames kept of one stack, 3 to 512; of a longer one the middle is left out. Default: 128."""

OTEL_ASYNCPROF_LINK = "OTEL_ASYNCPROF_LINK"
"""The span that a sample is linked to: ``span`` (the innermost, default) or ``local_root``."""

OTEL_ASYNCPROF_LINK_UNSAMPLED = "OTEL_ASYNCPROF_LINK_UNSAMPLED"
"""``true`` links samples to spans that are not sampled, too. Default: ``false``."""

OTEL_ASYNCPROF_LOOP_FRAMES = "OTEL_ASYNCPROF_LOOP_FRAMES"
"""``true`` keeps the frames of the event loop's machinery. Default: ``false``."""

OTEL_ASYNCPROF_SAMPLE_ATTRIBUTES = "OTEL_ASYNCPROF_SAMPLE_ATTRIBUTES"
"""The attributes of a sample, a comma-separated list out of ``thread.name``, ``asyncprof.state``, ``thread.id``,
``asyncio.task.name`` and ``asyncprof.local_root.name``. Default: ``thread.name,asyncprof.state``."""

OTEL_ASYNCPROF_TIMELINE = "OTEL_ASYNCPROF_TIMELINE"
"""``true`` gives every wall sample its timestamp. Default: ``false``."""

OTEL_ASYNCPROF_SLOW_SPAN_THRESHOLD = "OTEL_ASYNCPROF_SLOW_SPAN_THRESHOLD"
"""From how many milliseconds a span counts as slow, 0 to 3600000; ``100ms`` and ``1s`` are understood. Default: 100."""

OTEL_ASYNCPROF_CALLER_KINDS = "OTEL_ASYNCPROF_CALLER_KINDS"
"""The kinds of slow spans whose caller is recorded: a comma-separated list out of ``client``, ``internal``,
``producer``, ``consumer`` and ``server``. Default: ``client``."""

OTEL_ASYNCPROF_PROFILE_ID = "OTEL_ASYNCPROF_PROFILE_ID"
"""``false`` leaves out ``pyroscope.profile.id``, by which Grafana finds the profile of a span. Default: ``true``."""

OTEL_ASYNCPROF_FILE = "OTEL_ASYNCPROF_FILE"
"""The file that the ``file`` exporter appends to. Default: ``asyncprof.otlp``."""

OTEL_ASYNCPROF_EXIT_SIGNALS = "OTEL_ASYNCPROF_EXIT_SIGNALS"
"""``false``: SIGTERM and SIGHUP, where the application has no handler, end the process at once, without the profile of
the last interval. Default: ``true``."""

OTEL_ASYNCPROF_THREAD_CONTEXT = "OTEL_ASYNCPROF_THREAD_CONTEXT"
"""``true`` shows the span of the running task to profilers outside the process, such as OpenTelemetry's eBPF profiler:
the thread context of OTEP 4947 and the process context of OTEP 4719. CPython 3.12 and 3.13. Default: ``false``."""

OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL = "OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL"
"""``http/protobuf`` or ``grpc``. Default: ``OTEL_EXPORTER_OTLP_PROTOCOL``, else ``http/protobuf``."""

OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT = "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT"
"""The URL that profiles are sent to, used as it is. Default: ``OTEL_EXPORTER_OTLP_ENDPOINT``, for HTTP with
``/v1development/profiles`` put behind it, else ``http://localhost:4318/v1development/profiles`` or ``http://localhost:4317``."""

OTEL_EXPORTER_OTLP_PROFILES_HEADERS = "OTEL_EXPORTER_OTLP_PROFILES_HEADERS"
"""``key=value`` pairs with commas between them, values percent-encoded. Default: ``OTEL_EXPORTER_OTLP_HEADERS``."""

OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT = "OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT"
"""Seconds that one export with all its retries may take. Default: ``OTEL_EXPORTER_OTLP_TIMEOUT``, else 10."""

OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION = "OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION"
"""``none``, ``gzip`` or ``deflate``. Default: ``OTEL_EXPORTER_OTLP_COMPRESSION``, else ``none``."""

OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE = "OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE"
"""File with the certificates to trust. Default: ``OTEL_EXPORTER_OTLP_CERTIFICATE``."""

OTEL_EXPORTER_OTLP_PROFILES_CLIENT_KEY = "OTEL_EXPORTER_OTLP_PROFILES_CLIENT_KEY"
"""File with the key of the client certificate. Default: ``OTEL_EXPORTER_OTLP_CLIENT_KEY``."""

OTEL_EXPORTER_OTLP_PROFILES_CLIENT_CERTIFICATE = "OTEL_EXPORTER_OTLP_PROFILES_CLIENT_CERTIFICATE"
"""File with the client's certificate. Default: ``OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE``."""

OTEL_EXPORTER_OTLP_PROFILES_INSECURE = "OTEL_EXPORTER_OTLP_PROFILES_INSECURE"
"""``true``: gRPC without TLS when the endpoint has no scheme. Default: ``OTEL_EXPORTER_OTLP_INSECURE``, else
``false``."""
