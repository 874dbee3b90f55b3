"""Why there are no or few stacks, and what to do about it."""

from dataclasses import dataclass

FEW_SAMPLES = 5
STILL_ARRIVING_NS = 15_000_000_000  # an export interval of 10 s, and time to get here
NO_PERIOD_NS = 10_000_000
_STEP = "the operation's profile has what was seen in all of its runs"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a span and of what could have been seen of it."""

    duration_ns: int
    ended_ns: int
    now_ns: int
    samples: int
    period_ns: int  # 0 when nothing was sampled at all
    has_profile: bool  # of the same process, around that time
    timeline: bool
    runs: int
    runs_with_samples: int


def explanation(facts: Facts) -> tuple[str, str] | None:
    """A reason and a sentence; None when there is nothing to explain."""
    period = facts.period_ns or NO_PERIOD_NS
    runs = (
        f" {facts.runs_with_samples:,} of {facts.runs:,} runs of this operation have stacks" if facts.runs > 1 else ""
    )
    step = runs and f"{runs}: {_STEP}."
    if facts.samples == 0:
        if facts.now_ns - facts.ended_ns < STILL_ARRIVING_NS:
            return "still_arriving", "Its samples may still be on their way: profiles are sent every few seconds."
        if not facts.has_profile:
            return (
                "no_profile",
                "No profile of this process has arrived for that time. Is otel_asyncprof running in it "
                "(OTEL_ASYNCPROF_ENABLED), and are profiles sent here (OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT)?",
            )
        if facts.duration_ns < 2 * period:
            return (
                "too_short",
                f"This span lasted {_ms(facts.duration_ns)}; a look is taken every {_ms(period)}.{step}",
            )
        return (
            "not_linked",
            "The process was profiled, but no sample is linked to this span: it was not current in any task or "
            f"thread, or all its time belongs to spans below it.{runs and runs + '.'}",
        )
    if facts.samples < FEW_SAMPLES:
        looks = "1 look" if facts.samples == 1 else f"{facts.samples} looks"
        span = f"this span ({_ms(facts.duration_ns)} at one every {_ms(period)})"
        return "few_samples", f"Only {looks} at {span}: shares are rough.{step}"
    if not facts.timeline:
        return (
            "no_timeline",
            "Samples came without times: parallel work cannot be told from work in sequence, and there are no lanes. "
            "Set OTEL_ASYNCPROF_TIMELINE=true in the profiled process.",
        )
    return None


def _ms(nanoseconds: int) -> str:
    value = nanoseconds / 1e6
    return f"{value:.0f} ms" if value >= 10 else f"{value:.2g} ms"
