"""What options of several commands may be."""

import argparse
import re

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(k?)(?:hz)?", re.IGNORECASE)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?", re.IGNORECASE)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def rate(text: str) -> int:
    """Looks per second: 100, 100hz or 1khz."""
    found = _RATE.fullmatch(text.strip())
    value = float(found[1]) * (1000 if found[2] else 1) if found else 0
    if not 1 <= value <= 1000 or value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no rate from 1 to 1000 (100, 250hz, 1khz)")
    return int(value)


def duration(text: str) -> float:
    """Seconds: 30, 500ms, 10s, 5m or 1h."""
    found = _DURATION.fullmatch(text.strip())
    seconds = float(found[1]) * _SECONDS[(found[2] or "s").lower()] if found else 0
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time (30, 500ms, 10s, 5m, 1h)")
    return seconds


def percent(text: str) -> float:
    """A share: 10% or 10 is 0.1."""
    found = _PERCENT.fullmatch(text.strip())
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no share (10%)")
    return float(found[1]) / 100
