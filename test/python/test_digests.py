"""Digests of libraries, which are parts of the keys of caches."""

import subprocess
import sys

import pytest
from mpopt import digests, kernels, native
from mpopt.errors import MpoptError

NOTE = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"


def _file(tmp_path, data):
    path = tmp_path / "library.so"
    path.write_bytes(data)
    return path


def test_the_linker_names_what_it_linked(tmp_path):
    first = _file(tmp_path, b"\x7fELF" + bytes(600) + NOTE + bytes(range(20)) + b"code")
    assert digests.library_file_digest(first) == bytes(range(20)).hex()
    second = _file(tmp_path, b"\x7fELF" + bytes(600) + NOTE + bytes(range(1, 21)) + b"code")
    assert digests.library_file_digest(second) == bytes(range(1, 21)).hex()


@pytest.mark.parametrize(
    "head", [b"", b"\x7fELF" + bytes(5000) + NOTE + bytes(20), NOTE + bytes(19), bytes(4079) + NOTE]
)
def test_without_a_whole_note_the_content_counts(tmp_path, head):
    path = _file(tmp_path, head)
    assert digests.library_file_digest(path) == digests.file_digest(path)


def test_our_modules_have_the_note():
    assert len(native.library_digest()) == 40
    try:
        kernels.codegen()
    except MpoptError as error:
        pytest.skip(str(error))
    assert len(kernels.digest()) == 40 and kernels.digest() != native.library_digest()


def test_the_code_generator_is_not_loaded_for_its_digest():
    program = "import sys; from mpopt import kernels; kernels.digest(); print(*sys.modules)"
    run = [sys.executable, "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert "mpopt.kernels" in done.stdout and "mpopt._codegen" not in done.stdout
