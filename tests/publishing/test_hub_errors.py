"""Errors of a hub's client, told without what is secret."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import PublishError
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


def test_a_silent_hub_is_given_up_after_the_time_of_its_client(tmp_path: Path) -> None:
    secret = {"HF_TOKEN": "hf_verysecret", "HF_HUB_ETAG_TIMEOUT": "1"}
    words = [sys.executable, "-m", "curation", "pull", "org/name@1.0.0", "--out", str(tmp_path / "out")]
    # Connections are taken by the system, and nobody reads them.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment = os.environ | secret | {"HF_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        finished = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60, env=environment)
    assert finished.returncode == 2
    assert "The hub cannot be reached, or broke off, while looking for 1.0.0" in finished.stderr
    assert "HF_HUB_ETAG_TIMEOUT" in finished.stderr
    assert "verysecret" not in finished.stderr
    assert not [*tmp_path.iterdir()]
