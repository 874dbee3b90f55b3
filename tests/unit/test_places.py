"""Which frames count as the application's own."""

import sysconfig

import pytest

from otel_asyncprof import _callers
from otel_asyncprof.analysis.places import INSTALLED, NONE, OWN, STANDARD, kind_of
from otel_asyncprof.demo.service import SHOP

SCRIPTS = sysconfig.get_path("scripts")


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("/srv/app/orders.py", OWN),
        ("/srv/bin/nightly.py", OWN),
        ("/srv/venv/bin/uvicorn", INSTALLED),
        ("/srv/venv/lib/python3.12/site-packages/asyncpg/pool.py", INSTALLED),
        ("/usr/lib/python3.12/asyncio/tasks.py", STANDARD),
        ("/srv/venv/lib/python3.12/site-packages/otel_asyncprof/demo/app/shop.py", OWN),
        ("<frozen importlib._bootstrap>", NONE),
    ],
)
def test_a_recorded_file_is_judged_by_its_path(file: str, kind: str) -> None:
    """The script that pip makes of an entry point is the way into a package, and the demo's shop is an application."""
    assert kind_of(file) == kind


def test_an_exact_caller_is_in_the_demos_shop_but_not_in_an_entry_script() -> None:
    """The shop lies in this package, whose frames are otherwise left out, and uvicorn's script is at every root."""
    assert [_callers._is_between(str(SHOP)), _callers._is_library(str(SHOP))] == [False, False]
    assert _callers._is_between(_callers.__file__)
    assert _callers._is_library(f"{SCRIPTS}/uvicorn")
