"""PTX to cubin, without a GPU."""

import os
import re
import stat

import pytest
from mpopt import assembler, kernel_cache, log
from mpopt.errors import MpoptError, OptionError

PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 p) {
  .reg .b64 %rd<3>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [p];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.f32 %f1, [%rd2];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd2], %f2;
  ret;
}
"""


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("MPOPT_KERNEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(assembler.VARIABLE, raising=False)


def _needs(name, chip="sm_80"):
    try:
        assembler.ASSEMBLERS[name](chip)
    except assembler.UnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", list(assembler.ASSEMBLERS))
def test_each_assembler_makes_a_cubin_of_the_chip(monkeypatch, name):
    _needs(name)
    monkeypatch.setenv(assembler.VARIABLE, name)
    cubin = assembler.assemble(PTX, "sm_80")
    assert cubin[:4] == b"\x7fELF" and b"add" in cubin


@pytest.mark.parametrize("name", list(assembler.ASSEMBLERS))
def test_an_assembler_that_refuses_says_where(monkeypatch, name):
    _needs(name)
    monkeypatch.setenv(assembler.VARIABLE, name)
    with pytest.raises(MpoptError, match=r"refuses a kernel for sm_80(.|\n)*(line|rror)"):
        assembler.assemble(PTX.replace("add.f32", "add.f33"), "sm_80")


def test_blackwell_has_an_assembler_of_its_own(monkeypatch):
    _needs("triton", "sm_100")
    monkeypatch.setenv(assembler.VARIABLE, "triton")
    text = PTX.replace("7.0", "8.6").replace("sm_80", "sm_100")
    assert assembler.assemble(text, "sm_100")[:4] == b"\x7fELF"


def _fake_ptxas(tmp_path, body):
    path = tmp_path / "ptxas"
    path.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo one && exit\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return str(path)


def test_a_program_may_be_named_and_runs_once_per_text(monkeypatch, tmp_path):
    body = f'echo "$1" >> {tmp_path}/calls; cp "$4" "$3"'
    monkeypatch.setenv(assembler.VARIABLE, _fake_ptxas(tmp_path, body))
    before = log.counters["cubin_cache_hits"]
    for chip in ("sm_80", "sm_80", "sm_90a"):
        assert assembler.assemble(PTX, chip) == PTX.encode()
    assert (tmp_path / "calls").read_text() == "-arch=sm_80\n-arch=sm_90a\n"
    assert log.counters["cubin_cache_hits"] == before + 1


def test_a_named_program_that_fails_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv(assembler.VARIABLE, _fake_ptxas(tmp_path, "echo no such chip >&2; exit 1"))
    with pytest.raises(MpoptError, match="no such chip"):
        assembler.assemble(PTX, "sm_80")
    monkeypatch.setenv(assembler.VARIABLE, str(tmp_path / "none"))
    with pytest.raises(MpoptError, match=f"{re.escape(str(tmp_path))}/none' is no program"):
        assembler.assemble(PTX, "sm_80")


def test_an_unknown_name_is_an_error_with_a_hint(monkeypatch):
    monkeypatch.setenv(assembler.VARIABLE, "nvjitlnik")
    with pytest.raises(OptionError, match="did you mean 'nvjitlink'"):
        assembler.assemble(PTX, "sm_80")


def test_the_driver_gets_the_text_where_nothing_assembles_it(monkeypatch):
    def missing(chip):
        raise assembler.UnavailableError("gone")

    monkeypatch.setattr(assembler, "ASSEMBLERS", dict.fromkeys(assembler.ASSEMBLERS, missing))
    before = log.counters["fallbacks.assembler"]
    assert assembler.assemble(PTX, "sm_80") == PTX.encode() + b"\0"
    assert log.counters["fallbacks.assembler"] == before + 1
    monkeypatch.setenv(assembler.VARIABLE, "nvjitlink")
    with pytest.raises(MpoptError, match="nvjitlink: gone"):
        assembler.assemble(PTX, "sm_80")


def test_the_next_assembler_takes_what_one_refuses(monkeypatch):
    def refuses(ptx, chip):
        raise MpoptError("too new")

    table = {
        "old": lambda chip: ("old", refuses),
        "new": lambda chip: ("new", lambda ptx, chip: b"cubin"),
    }
    monkeypatch.setattr(assembler, "ASSEMBLERS", table)
    assert assembler.assemble(PTX, "sm_80") == b"cubin"


def test_a_cache_that_cannot_be_written_is_no_failure(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MPOPT_KERNEL_CACHE", str(tmp_path / "file"))
    cache = kernel_cache.KernelCache("cubin")
    cache.put("ab" * 32, b"x")
    assert cache.get("ab" * 32) is None
    monkeypatch.setenv("MPOPT_KERNEL_CACHE", str(tmp_path / "good"))
    cache.put("ab" * 32, b"x")
    assert cache.get("ab" * 32) == b"x"
    assert len([name for _, _, names in os.walk(tmp_path / "good") for name in names]) == 1
