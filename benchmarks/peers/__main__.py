"""make bench: all profilers on all programs, as JSON and as Markdown."""

import argparse
import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from peers.environments import Environment, prepare
from peers.machine import describe
from peers.profilers import PROFILERS, PROGRAMS
from peers.results import aggregate, markdown
from peers.runs import BENCHMARKS, Result, run_all

QUICK_SECONDS, QUICK_WARMUP = 1.0, 0.5


def main() -> int:
    """Runs what the command line asks for; 1 when ours failed or nothing ran."""
    options = _options()
    machine = describe()
    environments = {}
    for name in options.profilers:
        environments[name] = prepare(PROFILERS[name], options.cache)
        said = environments[name].version or environments[name].reason
        print(f"{name}: {said or 'ready'}", file=sys.stderr)
    settings = {
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "warm-up seconds": options.warmup,
    }
    results: list[Result] = []
    runs = run_all(
        [PROFILERS[name] for name in options.profilers],
        environments,
        [PROGRAMS[name] for name in options.programs],
        rounds=options.rounds,
        seconds=options.seconds,
        warmup=options.warmup,
    )
    for result in runs:
        results.append(result)
        print(f"{result.round + 1} {result.program} {result.profiler} {result.failure or 'done'}", file=sys.stderr)
        _write(options.output, results, machine, environments, settings)  # so that an interrupted run is not lost
    if not results:
        print("no profiler could be run", file=sys.stderr)
        return 1
    print(options.output.with_suffix(".md").read_text())
    return int(any(result.failure and result.profiler in ("none", "ours") for result in results))


def _write(
    output: Path,
    results: list[Result],
    machine: dict[str, str],
    environments: dict[str, Environment],
    settings: dict[str, object],
) -> None:
    rows = aggregate(results)
    content = {
        "machine": machine,
        "settings": settings,
        "profilers": {
            name: {
                "version": environment.version,
                "not_run": environment.reason,
                "settings": PROFILERS[name].settings,
                "counted": PROFILERS[name].counted,
            }
            for name, environment in environments.items()
        },
        "summary": {
            program: {name: asdict(row) for name, row in of_program.items()} for program, of_program in rows.items()
        },
        "runs": [asdict(result) for result in results],
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(content, indent=1) + "\n")
    output.with_suffix(".md").write_text(markdown(rows, machine, environments, settings))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench ARGS=…", description=__doc__)
    defaults = [name for name, profiler in PROFILERS.items() if profiler.is_default]
    parser.add_argument("--profilers", nargs="+", choices=PROFILERS, default=defaults, metavar="NAME")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, metavar="NAME")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, help="length of the window that is measured")
    parser.add_argument("--warmup", type=float, help="seconds before it")
    parser.add_argument("--quick", action="store_true", help="three programs, one round, short windows")
    parser.add_argument("--cache", type=Path, default=BENCHMARKS.parent / ".build" / "peers", help="environments")
    parser.add_argument("--output", type=Path, help="the JSON file; the Markdown is put beside it")
    options = parser.parse_args()
    if options.programs is None:
        options.programs = [name for name, program in PROGRAMS.items() if program.quick or not options.quick]
    baselines = [PROFILERS[name].baseline for name in options.profilers]
    options.profilers = [name for name in PROFILERS if name in {*baselines, *options.profilers}]
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.seconds = options.seconds or (QUICK_SECONDS if options.quick else 5.0)
    options.warmup = (QUICK_WARMUP if options.quick else 3.0) if options.warmup is None else options.warmup
    name = "quick" if options.quick else datetime.now(UTC).strftime("%Y-%m-%dT%H%M%S")
    options.output = options.output or BENCHMARKS / "results" / f"{name}.json"
    options.cache = options.cache.resolve()
    return options


if __name__ == "__main__":
    sys.exit(main())
