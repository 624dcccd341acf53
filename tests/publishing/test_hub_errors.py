"""Errors of a hub's client, told without what is secret."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import PublishError, UsageError
from curation.publishing import hub
from curation.publishing.hub import shown_endpoint, translate_errors, without_secrets

pytest.importorskip("huggingface_hub")


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [
        ("https://huggingface.co", "https://huggingface.co"),
        ("http://me:secret@hub.local:8080/x?token=secret", "http://hub.local:8080"),
        ("http://[::1", "the endpoint of HF_ENDPOINT"),
    ],
)
def test_an_endpoint_is_shown_without_what_it_hides(endpoint: str, shown: str) -> None:
    assert shown_endpoint(endpoint) == shown


@given(st.from_regex(r"[A-Za-z0-9_]{8,40}", fullmatch=True))
def test_no_token_is_in_a_message(token: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_TOKEN", f"{token}")
        told = without_secrets(f"Authorization: Bearer hf_{token} failed; {token}; https://x.y/z?sig={token}#1")
    assert token not in told


def test_addresses_lose_their_signatures_and_passwords() -> None:
    told = without_secrets("PUT https://user:pw@s3.example/a/b?X-Amz-Signature=abc failed, see http://h/p?q=1")
    assert told == "PUT https://s3.example/a/b failed, see http://h/p"


def test_mistakes_of_this_program_and_of_this_machine_pass_through() -> None:
    for error in (UsageError("x"), KeyError("x"), FileNotFoundError(2, "No such file", "/x")):
        with pytest.raises(type(error)), translate_errors("trying", "hub"):
            raise error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ConnectionResetError("reset"), "cannot be reached, or broke off, while trying"),
        (TimeoutError(), "cannot be reached, or broke off, while trying"),
        (ValueError("no metadata"), "The hub refused trying"),
    ],
)
def test_what_the_hub_or_the_network_caused_is_told(error: Exception, told: str) -> None:
    with pytest.raises(PublishError, match=told), translate_errors("trying", "hub"):
        raise error


def test_a_cause_behind_other_errors_is_found() -> None:
    error = RuntimeError("while uploading")
    error.__cause__ = ConnectionResetError("reset")
    with pytest.raises(PublishError, match="broke off") as refused, translate_errors("trying", "hub"):
        raise error
    assert refused.value.found == "reset"


@pytest.fixture(params=["silent", "dribbling", "dribbling headers"])
def slow_server(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server that takes connections and never gives an answer, or one of which a byte comes now and then."""
    listening = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def dribble(taken: socket.socket) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
        sent = 0 if request.param == "dribbling headers" else len(head)
        try:
            taken.recv(1 << 16)
            taken.sendall(head[:sent])
            while not over.wait(0.05):
                taken.sendall(head[sent : sent + 1] or b" ")
                sent += 1
        except OSError:
            pass
        finally:
            taken.close()

    def serve() -> None:
        while not over.is_set():
            try:
                taken, _ = listening.accept()
            except OSError:
                return
            if request.param != "silent":
                threading.Thread(target=dribble, args=(taken,), daemon=True).start()
            else:
                kept.append(taken)

    kept: list[socket.socket] = []
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    over.set()
    # Closing alone does not wake whoever waits in accept.
    listening.shutdown(socket.SHUT_RDWR)
    thread.join()
    for one in (listening, *kept):
        one.close()


PULL = """
import sys
from curation.cli import main
from curation.publishing import hub
hub.PATIENCE = 0.8
sys.exit(main(sys.argv[1:]))
"""


def test_a_server_that_never_answers_is_given_up(slow_server: str, tmp_path: Path) -> None:
    # In a process of its own: the request that is left behind goes with it.
    asked = [sys.executable, "-c", PULL, "pull", "org/name@1.0.0", "--out", str(tmp_path / "out")]
    environment = os.environ | {"HF_ENDPOINT": slow_server}
    finished = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60, env=environment)
    assert finished.returncode == 2
    assert "does not answer, or too slowly, while looking for 1.0.0" in finished.stderr
    assert "within 1 s" in finished.stderr
    assert not [*tmp_path.iterdir()]


def test_large_files_get_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "PATIENCE", 0.05)
    with pytest.raises(PublishError, match="does not answer"):
        hub.answer_of(lambda: time.sleep(0.5), "trying", "hub")
    assert hub.answer_of(lambda: time.sleep(0.5) or "done", "trying", "hub", 60 * hub.SLOWEST) == "done"
    with pytest.raises(PublishError, match="broke off"):
        hub.answer_of(lambda: socket.create_connection(("127.0.0.1", 1)), "trying", "hub")
