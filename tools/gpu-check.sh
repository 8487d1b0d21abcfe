#!/usr/bin/env bash
#
# tools/gpu-check.sh [--json FILE] [--seconds N] [--only SECTION,...]: all that
# needs a GPU, in at most eight minutes. Every kernel on the device against fp64;
# streams and captured graphs; the update's bits against the CPU's, its waits and
# its rate; products and row kernels against PyTorch's libraries; a training step
# against stock. All figures go to FILE
# (gpu-check.json). Without a GPU it says so and exits with 0.
#
# It takes the package that is built in this tree (tools/dev.sh build) or, if
# there is none, the installed one (a wheel).
#
# Environment:
#   PYTHON   the interpreter (default: .venv/bin/python if there is one, else python3)
#
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly root limit=480
python="${PYTHON:-}"
if [[ -z "$python" ]]; then
  python=python3
  [[ -x "$root/.venv/bin/python" ]] && python="$root/.venv/bin/python"
fi
if compgen -G "$root/python/mpopt/_mpopt.*.so" >/dev/null; then
  export PYTHONPATH="$root/python${PYTHONPATH:+:$PYTHONPATH}"
fi
status=0
timeout --signal=INT --kill-after=10 "$limit" "$python" -m mpopt.gpu_check "$@" || status=$?
if ((status == 124 || status == 137)); then
  echo "gpu-check.sh: error: stopped after $limit s" >&2
  exit 1
fi
exit "$status"
