# make demo    what this project is for, in one run; on a terminal the page stays until Ctrl-C, unless ARGS=--once
# make test    all tests, on the newest supported Python of this machine, or on PYTHON=/path/to/python
# make bench   otel_asyncprof beside other profilers, on Python 3.12 or on PYTHON; ARGS=--quick for a first look
# make wheel   the wheel that all Pythons can install, in .build/wheel
# make lint    style and types of the Python code, warnings of the C code
# make clean   removes what these have made
# Needed: Python (with its headers), a C compiler and make. Everything made goes to .build/.

ifneq ($(filter bench,$(MAKECMDGOALS)),)
PYTHON ?= $(shell .ci/find_pythons 3.12)
endif
ifndef PYTHON
PYTHON := $(shell .ci/find_pythons | sed -n '1s/^[^ ]* //p')
endif
ifeq ($(PYTHON)$(filter clean,$(MAKECMDGOALS)),)
$(error No usable Python found: CPython 3.11 to 3.14 with its headers (Debian: python3-dev) and venv (python3-venv) is needed; or say PYTHON=/path/to/python)
endif
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
# A Python without headers gets the wheel that an older one builds, and so does every Python with WHEEL=1: one serves all.
WHEEL ?= $(shell $(PYTHON) -c 'import os, sysconfig; print("" if os.path.exists(sysconfig.get_path("include") + "/Python.h") else 1)')
DEMO := .build/demo-$(VERSION)
TEST := .build/test-$(if $(WHEEL),wheel-)$(VERSION)
PEERS := .build/peers-$(VERSION)
SOURCES := pyproject.toml setup.py README.md LICENSE $(shell find ext otel_asyncprof -name '*.[ch]' -o -name '*.py' -o -name '*.pyi')
C_FLAGS := -std=c11 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -DPy_LIMITED_API=0x030b0000 -Iext \
	-I$(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')
JUNIT ?= .build/junit-$(VERSION).xml

.PHONY: demo test bench wheel lint clean

demo: $(DEMO)/installed
	@if [ -t 0 ] && [ -t 1 ]; then $(DEMO)/bin/otel-asyncprof demo $(ARGS); else $(DEMO)/bin/otel-asyncprof demo --once $(ARGS); fi

test: $(TEST)/installed
	@$(TEST)/bin/pytest -q -n auto --dist loadfile --junitxml=$(JUNIT) $(ARGS)

bench: $(PEERS)/ours/installed
	@PYTHONSAFEPATH=1 PYTHONPATH=benchmarks $(PEERS)/ours/bin/python -m peers --cache $(PEERS) $(ARGS)

wheel: .build/wheel/built

lint: $(TEST)/installed
	@$(TEST)/bin/pip install -q --disable-pip-version-check -e '.[lint]'
	$(TEST)/bin/ruff check
	$(TEST)/bin/mypy
	@for file in $$(find ext -name '*.c'); do $(CC) $(C_FLAGS) -c $$file -o /dev/null || exit 1; done

clean:
	rm -rf .build build dist *.egg-info otel_asyncprof/*.so

# Built by the oldest Python, so that the newer ones show that they can use it.
.build/wheel/built: $(SOURCES)
	@rm -rf .build/wheel build
	@builder=$$(.ci/find_pythons 3.11 || .ci/find_pythons 3.12 || .ci/find_pythons 3.13) && $$builder -m venv .build/builder
	@.build/builder/bin/pip wheel -q --disable-pip-version-check --no-deps -w .build/wheel .
	@touch $@

ifneq ($(WHEEL),)
$(DEMO)/installed: .build/wheel/built
	@echo "Installing into $(DEMO) …" >&2
	@$(PYTHON) -m venv $(DEMO)
	@$(DEMO)/bin/pip install -q --disable-pip-version-check --force-reinstall "$$(ls .build/wheel/*.whl)[demo,viewer]"
	@touch $@

# The dependencies first, which need not be installed anew with every change.
$(TEST)/installed: .build/wheel/built
	@echo "Installing into $(TEST) …" >&2
	@$(PYTHON) -m venv $(TEST)
	@$(TEST)/bin/pip install -q --disable-pip-version-check "$$(ls .build/wheel/*.whl)[test]"
	@$(TEST)/bin/pip install -q --disable-pip-version-check --force-reinstall --no-deps "$$(ls .build/wheel/*.whl)"
	@touch $@
else
# Installed anew when a source has changed; setuptools would take modules that are gone from build/.
$(DEMO)/installed: $(SOURCES)
	@echo "Installing into $(DEMO) …" >&2
	@$(PYTHON) -m venv $(DEMO)
	@rm -rf build
	@$(DEMO)/bin/pip install -q --disable-pip-version-check '.[demo,viewer]'
	@touch $@

# Editable, so that a change of Python code needs no new installation.
$(TEST)/installed: pyproject.toml setup.py $(filter ext/%,$(SOURCES))
	@echo "Installing into $(TEST) …" >&2
	@$(PYTHON) -m venv $(TEST)
	@$(TEST)/bin/pip install -q --disable-pip-version-check -e '.[test]'
	@touch $@
endif

# zstandard reads what a peer writes.
$(PEERS)/ours/installed: $(SOURCES)
	@echo "Installing into $(PEERS) …" >&2
	@$(PYTHON) -m venv $(PEERS)/ours
	@rm -rf build
	@$(PEERS)/ours/bin/pip install -q --disable-pip-version-check . zstandard
	@touch $@
