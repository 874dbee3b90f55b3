"""Kills processes that start and stop a profiler all the time, each after another while."""

import os
import random
import signal
import time
from typing import Any

from otel_asyncprof import Profiler
from otel_asyncprof.export import ProfileExporter, ProfileExportResult

PROCESSES, LONGEST, PATIENCE = 60, 0.06, 120


class Exporter(ProfileExporter):
    """Takes all."""

    def export(self, requests: Any) -> ProfileExportResult:
        return ProfileExportResult.SUCCESS


def work(told: int) -> None:
    """Until it is killed."""
    signal.alarm(PATIENCE)
    profiler = Profiler(interval=3600, exporter=Exporter())
    os.write(told, b".")
    while True:
        profiler.start()
        profiler.stop()


chance = random.Random(3)
for _ in range(PROCESSES):
    tell, told = os.pipe()
    child = os.fork()
    if child == 0:
        work(told)
    os.read(tell, 1)
    os.close(tell)
    os.close(told)
    time.sleep(chance.uniform(0, LONGEST))
    os.kill(child, signal.SIGTERM)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != -signal.SIGTERM:
        print("status", status)
        break
else:
    print("all died by it")
