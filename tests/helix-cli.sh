#!/bin/sh
# The deterministic tests of HELIX's commands (FEAT-002), under the name that it has there: no agent, no network.
cd "$(dirname "$0")/.." || exit 1
python=.venv/bin/python
[ -x "$python" ] || python=python3
exec "$python" -m pytest tests/cli tests/core/supervision "$@"
