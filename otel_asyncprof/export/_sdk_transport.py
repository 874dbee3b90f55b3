"""The one place that knows what OpenTelemetry's SDK and exporters keep private."""

from opentelemetry import context


def suppress_instrumentation() -> None:
    """From now on, nothing the calling thread does makes a span."""
    current = context.get_current()
    # The keys are private constants of the API; instrumentations of older releases look for the plain text.
    for key in (
        getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", None),
        getattr(context, "_SUPPRESS_HTTP_INSTRUMENTATION_KEY", None),
        "suppress_instrumentation",
    ):
        if key is not None:
            current = context.set_value(key, True, current)
    context.attach(current)
