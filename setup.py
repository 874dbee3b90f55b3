"""The C extension. Everything else is in pyproject.toml."""

import glob
import platform

from setuptools import Extension, setup

# Readers of the thread context want a TLS descriptor; on aarch64 that is what every compiler makes.
TLS_FLAGS = ["-mtls-dialect=gnu2"] if platform.machine() == "x86_64" else []

setup(
    ext_modules=[
        Extension(
            "otel_asyncprof._native",
            sources=sorted(glob.glob("ext/**/*.c", recursive=True)),
            depends=sorted(glob.glob("ext/**/*.h", recursive=True)),
            include_dirs=["ext"],
            define_macros=[("Py_LIMITED_API", "0x030b0000"), ("_GNU_SOURCE", "1")],
            py_limited_api=True,
            extra_compile_args=[
                *("-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-fvisibility=hidden", "-pthread"),
                *TLS_FLAGS,
            ],
            extra_link_args=["-pthread", "-ldl"],
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
