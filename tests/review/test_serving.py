"""The App is this machine's alone, and no second review takes over what answers at a port already."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from curation.cli import main
from curation.errors import ReviewError, UsageError
from curation.review.serving import find_place
from tests.review.conftest import find_program, free_port
from tests.review.review_world import ReviewWorld, write_world

EVERY = "0.0.0.0"  # noqa: S104  (what must not be listened at)
LINUX = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="sockets are read as Linux shows them")


@contextmanager
def listening(answer: bytes = b"") -> Iterator[int]:
    """A program of somebody else at a port: it takes connections, and says something or nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    one, _ = server.accept()
                except OSError:
                    return
                held.append(one)
                with suppress(OSError):
                    one.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        # Closing alone does not wake whoever waits in accept.
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for one in held:
            one.close()


class Foreign(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *words: object) -> None:
        pass


@contextmanager
def foreign_web_server() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Foreign) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-something\r\n", b"\xff" * 100_000])
def test_a_port_in_use_is_one_error_at_once(answer: bytes) -> None:
    with listening(answer) as port:
        started = time.monotonic()
        with pytest.raises(ReviewError, match=f"Port {port} is not free") as caught:
            find_place(port=str(port))
        assert time.monotonic() - started < 30
    assert caught.value.found == "another program"
    assert "--port next" in str(caught.value)


def test_a_port_that_was_left_is_free() -> None:
    with listening() as port:
        socket.create_connection(("127.0.0.1", port)).close()
    place = find_place(port=str(port))
    assert (place.address, place.port, place.is_local) == ("127.0.0.1", port, True)


def test_next_is_the_first_free_port_from_the_default_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening() as port:
        monkeypatch.setenv("FIFTYONE_DEFAULT_APP_PORT", str(port))
        with pytest.raises(ReviewError, match=str(port)):
            find_place()
        found = find_place(port="next").port
        assert found > port
        with socket.create_server(("127.0.0.1", found)):
            assert find_place(port="next").port > found


def test_the_address_is_loopback_whatever_fiftyone_is_configured_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIFTYONE_DEFAULT_APP_ADDRESS", EVERY)
    port = str(free_port())
    assert find_place(port=port).address == "127.0.0.1"
    assert find_place("localhost", port).address == "127.0.0.1"
    beyond = find_place(EVERY, port)
    assert (beyond.address, beyond.is_local) == (EVERY, False)


@pytest.mark.parametrize("port", ["0", "-1", "65536", "http", "", "٣", "1e3", "9" * 5000])
def test_what_is_no_port(port: str) -> None:
    with pytest.raises(UsageError, match="no port"):
        find_place(port=port)


@pytest.mark.parametrize("address", ["", "no such host", "::1", "192.0.2.7", "a" * 300, "caf\u00e9.invalid"])
def test_what_is_no_address_of_this_machine(address: str) -> None:
    # 192.0.2.0/24 is for documentation (RFC 5737): no machine has it.
    with pytest.raises(ReviewError, match="no such address"):
        find_place(address, str(free_port()))


def test_help_says_what_another_address_opens(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["review", "start", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "everybody who reaches that address can read every file that this user can read" in told


@pytest.mark.parametrize("server", [foreign_web_server, listening])
def test_a_review_refuses_a_foreign_port_before_it_builds(
    server: "type[foreign_web_server]", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = write_world(tmp_path / "world")
    given = ["--source", f"coco={world.annotations}", "--photos", str(world.photos), "--no-cache"]
    with server() as port:
        assert main(["review", "start", "--folder", str(tmp_path / "r"), *given, "--port", str(port)]) == 2
    told = capsys.readouterr().err
    assert f"error: Port {port} is not free" in told
    assert "another program" in told
    assert not (tmp_path / "r").exists()


def sockets() -> dict[int, set[str]]:
    """Return the addresses listened at on this machine, by port: as ``ss -ltnp`` says, or else the kernel."""
    found: dict[int, set[str]] = {}
    if ss := shutil.which("ss"):
        lines = subprocess.run([ss, "-Hltnp"], capture_output=True, text=True, check=True).stdout.splitlines()
        for line in lines:
            address, _, port = line.split()[3].rpartition(":")
            found.setdefault(int(port), set()).add(address.strip("[]").partition("%")[0])
        return found
    for name, loopback in (("tcp", "0100007F"), ("tcp6", "00000000000000000000000001000000")):
        table = Path("/proc/net") / name
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            _, local, _, state = line.split()[:4]
            if state == "0A":
                address, _, port = local.partition(":")
                shown = "127.0.0.1" if address == loopback else address
                found.setdefault(int(port, 16), set()).add(shown)
    return found


def ports_of(process: int) -> set[int]:
    """Return the ports that a process and its descendants listen at, or are connected to: App, database, services."""
    psutil = pytest.importorskip("psutil")
    parent = psutil.Process(process)
    found = set()
    for one in (parent, *parent.children(recursive=True)):
        for connection in one.net_connections(kind="tcp"):
            listens = connection.status == psutil.CONN_LISTEN
            if listens or (connection.raddr and connection.raddr[0] in ("127.0.0.1", "::1")):
                found.add((connection.laddr if listens else connection.raddr)[1])
    return found


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment that FiftyOne takes for a container, with a database of FiftyOne's own."""
    pytest.importorskip("fiftyone.constants", reason="FiftyOne is absent")
    if find_program() is None:
        pytest.skip("no mongod is at hand: pip install 'curation[mongo]'")
    folder = tmp_path_factory.mktemp("container")
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(
        "import os.path\nreal = os.path.exists\nos.path.exists = lambda one: one == '/.dockerenv' or real(one)\n"
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FIFTYONE")}
    environment |= {
        "HOME": str(folder),
        "FIFTYONE_DEFAULT_APP_ADDRESS": EVERY,
        "FIFTYONE_DO_NOT_TRACK": "true",
        "PYTHONPATH": os.pathsep.join([str(folder / "site"), str(Path(__file__).parents[2])]),
    }
    return environment


def command(folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "curation", "review", "start", "--folder", str(folder), "--remote", *more]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ReviewWorld:
    return write_world(tmp_path_factory.mktemp("world"))


@contextmanager
def served(environment: dict[str, str], folder: Path, *more: str) -> Iterator[tuple[int, int]]:
    """A review that runs: its process, and the port that it says it chose."""
    with subprocess.Popen(command(folder, *more), stderr=subprocess.PIPE, text=True, env=environment) as program:
        assert program.stderr is not None
        told = ""
        for line in program.stderr:
            told += line
            if line.startswith("The App is at"):
                break
        found = re.search(r"The App is at http://127\.0\.0\.1:(\d+)/", told)
        try:
            assert found, told
            yield program.pid, int(found[1])
        finally:
            program.terminate()
            program.communicate(timeout=60)


def answer(port: int) -> dict[str, object]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/fiftyone", timeout=30) as stream:
        return dict(json.load(stream))


@pytest.mark.mongo
@pytest.mark.slow
@LINUX
def test_a_review_in_a_container_is_this_machines_alone(
    container: dict[str, str], world: ReviewWorld, tmp_path: Path
) -> None:
    """App and database listen at loopback; a second review leaves the first one's App alone."""
    asked = [sys.executable, "-c", "import fiftyone.core.utils as u; print(u.is_container())"]
    said = subprocess.run(asked, env=container, capture_output=True, text=True, check=True).stdout
    assert said.split()[-1] == "True"  # where FiftyOne would listen at 0.0.0.0
    given = ("--source", f"coco={world.annotations}", "--photos", str(world.photos), "--no-cache")
    with served(container, tmp_path / "one", *given, "--port", "next") as (process, port):
        seen, ours = sockets(), ports_of(process)
        open_at = {number: seen[number] for number in ours if number in seen}
        assert port in open_at
        assert len(open_at) >= 2  # the database too
        assert {address for addresses in open_at.values() for address in addresses} <= {"127.0.0.1", "::1"}

        second = subprocess.run(
            command(tmp_path / "two", *given, "--port", str(port)),
            env=container,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert second.returncode == 2
        assert f"error: Port {port} is not free" in second.stderr
        assert "a FiftyOne App: another review" in second.stderr
        assert "Traceback" not in second.stderr
        assert not (tmp_path / "two").exists()
        assert answer(port)["version"]

        with served(container, tmp_path / "two", *given, "--port", "next") as (other, chosen):
            assert chosen != port
            assert answer(chosen)["version"]
            assert port not in ports_of(other)
        assert answer(port)["version"]
