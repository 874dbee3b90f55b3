"""Certificates for tests with TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make_certificates(folder: Path) -> None:
    """server.key, server.crt, client.key and client.crt: for localhost, each signing itself."""
    for name in ("server", "client"):
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
                *("-addext", "subjectAltName=DNS:localhost"),
                *("-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"),
            ],
            check=True,
            capture_output=True,
        )
