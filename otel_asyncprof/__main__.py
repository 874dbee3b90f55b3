"""`python -m otel_asyncprof`: the command where no script directory is on PATH."""

import sys

from otel_asyncprof.cli import main

sys.exit(main())
