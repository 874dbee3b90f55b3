"""The machine that the figures are from."""

import os
import platform
from pathlib import Path


def describe() -> dict[str, str]:
    """Processor, cores, memory, kernel, C library, Python and how loaded it was."""
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{int(memory.split()[1]) / (1 << 20):.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "C library": " ".join(platform.libc_ver()),
        "Python": platform.python_version(),
        "load at the start": f"{os.getloadavg()[0]:.2f}",
        "ptrace": _ptrace(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _ptrace() -> str:
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    restricted = f"Yama scope {scope.read_text().strip()}" if scope.exists() else "no Yama"
    return f"{restricted}, {'root' if os.geteuid() == 0 else 'not root'}"
