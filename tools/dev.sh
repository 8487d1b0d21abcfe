#!/usr/bin/env bash
#
# tools/dev.sh VERB [ARGUMENT...]: all that a developer runs. Every verb first
# does what it needs and is not done yet; a second run does no work twice.
#
#   demo        train a GPT-2 through backend "mpopt", print what was saved and
#               write an HTML report to build/demo
#   test        build, lint, and run every test that is not slow
#
#   setup       install what is missing: Debian packages (as root) and .venv
#   build       compile into build/dev
#   lint        clang-format, clang-tidy, ruff, mypy --strict, house rules
#   test-ops    the slow tests: PyTorch's operator database, long sweeps
#   bench       python -m mpopt.bench ARGUMENT... (all families, small)
#   docs        reference of dialect and passes, with run examples, in build/docs
#   new-pass    NAME "SUMMARY": source, Passes.td entry, CMake line and tests
#   wheel       build a wheel into build/wheel and try it in an empty environment
#   help        print this
#
# Environment:
#   MPOPT_TORCH   version of torch in .venv, such as 2.11.0 (default: pinned)
#   MPOPT_VENV    the virtual environment's folder (default: .venv)
#   MPOPT_CXX     C++ compiler (default: clang++-22)
#   MPOPT_JOBS    parallel jobs (default: the number of processors)
#   MPOPT_SKIP_PACKAGES=1   do not look for Debian packages
#
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
readonly root dev=tools/dev build=build/dev
readonly venv="${MPOPT_VENV:-.venv}"
readonly py="$venv/bin/python"
readonly jobs="${MPOPT_JOBS:-$(nproc)}"

# A shared compiler cache may serve any clone; precompiled headers need the two
# sloppiness settings.
export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=pch_defines,time_macros
# Compiled models go where `rm -r build` removes them.
export TORCHINDUCTOR_CACHE_DIR="${TORCHINDUCTOR_CACHE_DIR:-$root/build/inductor-cache}"

# Not exported as CXX: Inductor would compile its kernels with it, and clang has no OpenMP.
readonly cxx="${MPOPT_CXX:-clang++-22}"
cc="${cxx/clang++/clang}"
readonly cc="${cc/g++/gcc}"
# lit and the tests find FileCheck, mlir-opt and the like here.
export PATH="/usr/lib/llvm-22/bin:$PATH"

say() { printf '== %s\n' "$*"; }
fail() {
  printf 'dev.sh: error: %s\n' "$*" >&2
  exit 1
}

# --- setup -------------------------------------------------------------------

# Prints the names of packages.txt that are not installed.
missing_packages() {
  local -a wanted
  mapfile -t wanted < <(sed -e 's/[[:space:]]*#.*//' -e '/^$/d' "$dev/packages.txt")
  comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) \
    <(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null |
      sed -n 's/ installed$//p' | sort -u)
}

setup_packages() {
  [[ "${MPOPT_SKIP_PACKAGES:-}" == 1 ]] && return
  command -v dpkg-query >/dev/null || fail "this is not Debian; install what" \
    "$dev/packages.txt lists and set MPOPT_SKIP_PACKAGES=1"
  local -a missing
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    fail "Debian packages are missing; run as root:
  apt-get update && apt-get install --no-install-recommends ${missing[*]}"
  fi
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # An unreachable third-party archive must not stop us; a package that is not
  # to be had will.
  apt-get update -qq || say "apt-get update failed in part; going on"
  apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null ||
    fail "apt-get could not install the packages named above"
}

# Debian's own interpreter first: python3-dev holds its headers.
find_python() {
  local candidate
  for candidate in /usr/bin/python3 python3; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' \
      2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  fail "no python3 >= 3.10 with the venv module; install python3 and python3-venv"
}

setup_python() {
  local -a torch=(-r "$dev/requirements-torch.txt")
  [[ -n "${MPOPT_TORCH:-}" ]] && torch=("torch==$MPOPT_TORCH" torchvision)
  local stamp="$venv/mpopt-stamp" want
  want="$(cat "$dev/requirements.txt" "$dev/requirements-torch.txt" "$dev/link_package.py" \
    pyproject.toml CMakeLists.txt - <<<"$root ${MPOPT_TORCH:-}" | sha256sum)"
  if [[ -x "$py" && -f "$stamp" && "$(<"$stamp")" == "$want" ]]; then
    return
  fi
  if ! [[ -x "$py" ]]; then
    local python
    python="$(find_python)"
    say "creating $venv with $("$python" -V)"
    "$python" -m venv "$venv"
  fi
  say "installing Python packages (${torch[*]})"
  "$py" -m pip install -q --disable-pip-version-check \
    -r "$dev/requirements.txt" "${torch[@]}"
  "$py" "$dev/link_package.py" "$root" "$build/bin/mpopt"
  echo "$want" >"$stamp"
}

verb_setup() {
  setup_packages
  setup_python
}

# --- build -------------------------------------------------------------------

verb_build() {
  verb_setup
  local -a configure=(cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release
    "-DCMAKE_C_COMPILER=$cc" "-DCMAKE_CXX_COMPILER=$cxx"
    -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
    "-DPython_EXECUTABLE=$(realpath -s "$py")")
  # ninja configures again by itself when a CMakeLists.txt changes.
  local stamp="$build/configure-stamp" want="${configure[*]}"
  if ! [[ -f "$build/build.ninja" && -f "$stamp" && "$(<"$stamp")" == "$want" ]]; then
    say "configuring $build"
    mkdir -p "$build"
    "${configure[@]}" >"$build/configure.log" 2>&1 || {
      cat "$build/configure.log" >&2
      fail "cmake failed; the log is $build/configure.log"
    }
    echo "$want" >"$stamp"
  fi
  say "building"
  cmake --build "$build" -j "$jobs"
}

# --- checks and tests --------------------------------------------------------

run_lint() { "$py" "$dev/lint.py" --build "$build" --jobs "$jobs" "$@"; }

verb_lint() {
  verb_build
  run_lint "$@"
}

# run_pytest ARGUMENT...: a fallback of the backend is an error in our tests,
# and the workers share the processors.
run_pytest() {
  local threads=$(($(nproc) / jobs))
  MPOPT_STRICT=1 OMP_NUM_THREADS="${OMP_NUM_THREADS:-$((threads > 0 ? threads : 1))}" \
    "$py" -m pytest -n "$jobs" --dist worksteal "$@"
}

# stage NAME COMMAND...: runs it and notes its time and whether it failed.
declare -a failed=() times=()
stage() {
  local name="$1" start=$SECONDS
  shift
  say "$name"
  "$@" || failed+=("$name")
  times+=("$name $((SECONDS - start)) s")
}

verb_test() {
  local start=$SECONDS
  verb_build
  times+=("setup and build $((SECONDS - start)) s")
  stage lint run_lint
  stage "lit tests" cmake --build "$build" -j "$jobs" --target check-mp
  stage "unit tests" cmake --build "$build" -j "$jobs" --target check-mp-unit
  stage "python tests" run_pytest -m "not slow" "$@"
  printf '== %s\n' "${times[@]}"
  ((${#failed[@]} == 0)) || fail "failed: $(printf '%s, ' "${failed[@]}" | sed 's/, $//')"
}

verb_test_ops() {
  verb_build
  run_pytest -m slow "$@"
}

# --- what users run ----------------------------------------------------------

verb_demo() {
  verb_build
  mkdir -p build/demo
  "$py" -m mpopt.demo "$@"
}

verb_bench() {
  verb_build
  (($#)) || set -- casts --families all --quick
  "$py" -m mpopt.bench "$@"
}

verb_docs() {
  verb_build
  local out=build/docs llvm=/usr/lib/llvm-22
  mkdir -p "$out"
  say "writing $out/Dialect.md and $out/Passes.md"
  mlir-tblgen -gen-dialect-doc -dialect=mp -I "$llvm/include" -I . \
    dialect/IR/MPOps.td -o "$out/Dialect.md"
  local file
  for file in passes/Passes.td codegen/Lower/Passes.td; do
    mlir-tblgen -gen-pass-doc -I "$llvm/include" -I . "$file"
  done >"$out/Passes.md.in"
  "$py" tools/lit-to-doc.py --bin "$build/bin" <"$out/Passes.md.in" >"$out/Passes.md"
  rm "$out/Passes.md.in"
}

verb_new_pass() {
  (($# == 2)) || fail 'usage: tools/dev.sh new-pass NAME "SUMMARY"'
  verb_setup
  "$py" "$dev/new_pass.py" "$@"
}

verb_wheel() {
  verb_setup
  local out=build/wheel
  rm -rf "$out"
  CC="$cc" CXX="$cxx" CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_BUILD_PARALLEL_LEVEL="$jobs" \
    "$py" -m pip wheel -q --disable-pip-version-check . --no-deps --no-build-isolation -w "$out"
  "$py" "$dev/check_wheel.py" "$out"
}

# The head of this file, up to the first line that is not a comment.
verb_help() { sed -n -e '1,2d' -e '/^#/!q' -e 's/^# \{0,1\}//p' "$root/tools/dev.sh"; }

main() {
  local verb="${1:-help}"
  (($#)) && shift
  case "$verb" in
  setup | build | lint | test | test-ops | bench | demo | docs | new-pass | wheel)
    "verb_${verb//-/_}" "$@"
    ;;
  help | -h | --help) verb_help ;;
  *) fail "unknown verb '$verb'; tools/dev.sh help lists them" ;;
  esac
}

main "$@"
