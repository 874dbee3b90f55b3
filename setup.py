"""The C extension. Everything else is in pyproject.toml."""

import glob

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "otel_asyncprof._native",
            sources=sorted(glob.glob("ext/**/*.c", recursive=True)),
            depends=sorted(glob.glob("ext/**/*.h", recursive=True)),
            include_dirs=["ext"],
            define_macros=[("Py_LIMITED_API", "0x030b0000"), ("_GNU_SOURCE", "1")],
            py_limited_api=True,
            extra_compile_args=["-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-fvisibility=hidden", "-pthread"],
            extra_link_args=["-pthread", "-ldl"],
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
