# SPDX-License-Identifier: Apache-2.0
"""The installed wheel: its files, its programs, programs built with it, and a process that torch is in, too.

MXDNN_TEST_WHEEL names a wheel file: it is installed into a fresh environment, and the consumer project is built there.
"""
import ctypes
import os
import pathlib
import subprocess
import sys
import venv

import pytest

import mxdnn

SOURCES = pathlib.Path(__file__).resolve().parents[3]
CONSUMER = SOURCES / "tests" / "consumer" / "project"


def run(*command: object, **options) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MXDNN_", "PYTHON"))}
    done = subprocess.run([str(c) for c in command], env=environment, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


def build_consumer(python: str, folder: pathlib.Path) -> None:
    """Finds the package as `python` says, builds both programs and runs them."""
    cmake_dir = run(python, "-c", "import mxdnn; print(mxdnn.get_cmake_dir())", cwd=folder).strip()
    run("cmake", "-S", CONSUMER, "-B", folder / "build", f"-Dmxdnn_DIR={cmake_dir}",
        f"-DEXPECTED_VERSION={mxdnn.__version__}")
    run("cmake", "--build", folder / "build")
    for program in ("consumer_c", "consumer_cpp"):
        assert f"{program}: ok" in run(folder / "build" / program, cwd=folder)
    # Of this environment, and oneTBB too, not of the system.
    libraries = run("ldd", folder / "build" / "consumer_cpp")
    prefix = pathlib.Path(python).parent.parent
    for name in ("libmxdnn.so.0", "libtbb.so.12"):
        line = next(line for line in libraries.splitlines() if line.strip().startswith(name))
        assert pathlib.Path(line.split()[2]).resolve().is_relative_to(prefix.resolve()), line


def test_files_are_where_the_module_says():
    assert (pathlib.Path(mxdnn.get_include()) / "mxdnn" / "mxdnn.hpp").is_file()
    assert (pathlib.Path(mxdnn.get_cmake_dir()) / "mxdnnConfig.cmake").is_file()
    assert (pathlib.Path(mxdnn.get_pkgconfig_dir()) / "mxdnn.pc").is_file()
    library = mxdnn.load_library()
    library.mxdnn_version.restype = ctypes.POINTER(ctypes.c_int)
    assert ".".join(map(str, library.mxdnn_version()[0:3])) == mxdnn.__version__


def test_a_source_tree_is_no_installation():
    message = run(sys.executable, "-c", "import mxdnn\ntry: mxdnn.get_library()\nexcept FileNotFoundError as e: print(e)",
                  cwd=SOURCES / "integrations" / "python")
    assert "no installed wheel" in message


@pytest.mark.parametrize("program, says", [
    ("mxdnn-pack", "Packs the weights"), ("mxdnn-bench", "post-ops: "), ("mxdnn-verbose-to-bench", "Turns lines of")])
def test_programs_are_commands_of_the_environment(program, says):
    assert says in run(pathlib.Path(sys.executable).parent / program, "--help")


def test_bench_runs_and_has_its_sets(tmp_path):
    out = run(pathlib.Path(sys.executable).parent / "mxdnn-bench", "--mx_matmul", "--batch=smoke", cwd=tmp_path)
    assert "failed:0" in out and "passed:0" not in out


def test_status_of_a_program_is_passed_on():
    done = subprocess.run([str(pathlib.Path(sys.executable).parent / "mxdnn-bench"), "--typo"], capture_output=True)
    assert done.returncode == 2


@pytest.fixture(scope="session")
def consumer_library(tmp_path_factory) -> pathlib.Path:
    """consumer.c as a library, linked by pkg-config's flags and without a search path: main() is its test."""
    folder = tmp_path_factory.mktemp("consumer")
    environment = {"PKG_CONFIG_PATH": mxdnn.get_pkgconfig_dir(), "PATH": os.environ["PATH"]}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "mxdnn"], env=environment, check=True, text=True,
                           capture_output=True).stdout.split()
    out = folder / "libconsumer.so"
    run("cc", "-shared", "-fPIC", CONSUMER / "consumer.c", "-o", out, *flags)
    return out


BOTH = """
import ctypes, sys
def ours():
    import mxdnn
    mxdnn.load_library()
    assert ctypes.CDLL(sys.argv[1]).main() == 0
def theirs():
    import torch
    torch.set_num_threads(2)
    # OpenMP's threads and oneDNN; whole numbers, so that every order of additions gives the same.
    x = torch.arange(64 * 256).reshape(64, 256).remainder(5).to(torch.bfloat16)
    w = torch.arange(96 * 256).reshape(96, 256).remainder(3).to(torch.bfloat16)
    got = torch.nn.functional.linear(x, w).double()
    want = x.double() @ w.double().T
    assert torch.equal(got, want.to(torch.bfloat16).double())
    assert torch.equal(torch.nn.functional.linear(x.float(), w.float()).double(), want)
{calls}
print("both ran")
"""


@pytest.mark.parametrize("calls", ["ours(); theirs(); ours(); theirs()", "theirs(); ours(); theirs(); ours()"])
def test_runs_beside_torch(consumer_library, tmp_path, calls):
    pytest.importorskip("torch")
    out = run(sys.executable, "-c", BOTH.format(calls=calls), consumer_library, cwd=tmp_path)
    assert out.count("consumer_c: ok") == 2 and "both ran" in out


def test_tbb_of_another_environment_is_found(tmp_path):
    """The wheel alone, far from tbb: load_library() asks the package where it is."""
    elsewhere = tmp_path / "a" / "b" / "c" / "d" / "e" / "mxdnn"
    elsewhere.parent.mkdir(parents=True)
    run("cp", "-r", pathlib.Path(mxdnn.__file__).parent, elsewhere)
    code = "import sys, re; sys.path.insert(0, sys.argv[1])\nimport mxdnn; mxdnn.load_library(); print(mxdnn.__file__)\n" \
           "print(re.findall(r'/\\S*libtbb\\.so\\S*', open('/proc/self/maps').read())[0])"
    out = run(sys.executable, "-c", code, elsewhere.parent, cwd=tmp_path).split()
    assert out[0] == str(elsewhere / "__init__.py")
    assert pathlib.Path(out[1]).resolve().is_relative_to(pathlib.Path(sys.prefix).resolve())


def test_consumer_in_a_fresh_environment(tmp_path):
    wheel = os.environ.get("MXDNN_TEST_WHEEL")
    if not wheel:
        pytest.skip("MXDNN_TEST_WHEEL names no wheel")
    assert pathlib.Path(wheel).name.endswith("-py3-none-linux_x86_64.whl")
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    run(python, "-m", "pip", "install", "--disable-pip-version-check", wheel)
    build_consumer(python, tmp_path)
