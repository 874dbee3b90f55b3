"""What importing the package brings along."""

import subprocess
import sys


def run(code):
    """The output of a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_the_package_imports_no_transport():
    """Nor protobuf: a process that is not profiled pays for none of them."""
    heavy = {"grpc", "requests", "urllib3", "google.protobuf", "opentelemetry.exporter"}
    loaded = run("import sys, otel_asyncprof, otel_asyncprof.testing; print(*sys.modules)")
    assert heavy & set(loaded) == set()


def test_http_does_not_import_grpc():
    """Nor the other way round."""
    make = "from otel_asyncprof.export.otlp_{} import OTLPProfileExporter as E; E().shutdown()"
    loaded = run(f"import sys; {make.format('http')}; print(*sys.modules)")
    assert ("requests" in loaded, "grpc" in loaded) == (True, False)
    loaded = run(f"import sys; {make.format('grpc')}; print(*sys.modules)")
    assert ("requests" in loaded, "grpc" in loaded) == (False, True)


def test_importing_starts_nothing():
    """No thread, no handler, no patch."""
    code = (
        "import signal, threading, opentelemetry.context as c; before = c._RUNTIME_CONTEXT\n"
        "handlers = [signal.getsignal(s) for s in (signal.SIGSEGV, signal.SIGBUS, signal.SIGTERM)]\n"
        "import otel_asyncprof, otel_asyncprof.instrumentor\n"
        "assert c._RUNTIME_CONTEXT is before and threading.active_count() == 1\n"
        "assert handlers == [signal.getsignal(s) for s in (signal.SIGSEGV, signal.SIGBUS, signal.SIGTERM)]\n"
        "print('untouched')"
    )
    assert run(code) == ["untouched"]


def test_the_names_of_the_package_are_imported_when_they_are_used():
    """Until then neither asyncio nor the SDK is there; what does not exist is no attribute."""
    code = (
        "import sys, otel_asyncprof\n"
        "assert not {'asyncio', 'opentelemetry'} & set(sys.modules)\n"
        "assert otel_asyncprof.Profiler is sys.modules['otel_asyncprof._profiler'].Profiler\n"
        "from otel_asyncprof import *\n"
        "print(*sorted(set(otel_asyncprof.__all__) - set(dir(otel_asyncprof))), hasattr(otel_asyncprof, 'nothing'))"
    )
    assert run(code) == ["False"]
