"""A database killed in the middle of a review: one error, every confirmed verdict in the log, a start mends all."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from curation.decisions.files import read_decisions
from tests.review.conftest import find_program, free_port
from tests.review.review_world import ReviewWorld

pytestmark = [pytest.mark.mongo, pytest.mark.slow]

REVIEWED = """
import sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
from curation.errors import CurationError
from curation.review.session import start_review
from tests.review.review_world import ReviewWorld
folder = Path(sys.argv[1])
try:
    review = start_review(folder, "stopped", ReviewWorld(Path(sys.argv[2]), Path(sys.argv[3])).images()).review
    ids = review.dataset.values("id")
    for turn in range(int(sys.argv[4])):
        review.decide(ids[turn % 4 :: 4], ("near", "far", "remove", "keep")[turn % 3], reviewer="anna")
        print(turn, flush=True)
    print("verdicts", review.dataset.count("verdict"), flush=True)
except CurationError as error:
    print("error:", error, flush=True)
    sys.exit(2)
"""


def started(port: int, folder: Path) -> "subprocess.Popen[bytes]":
    folder.mkdir(exist_ok=True)
    options = ["--dbpath", folder, "--port", str(port), "--bind_ip", "127.0.0.1", "--quiet", "--nounixsocket"]
    process = subprocess.Popen(
        [str(find_program()), *options, "--wiredTigerCacheSizeGB", "0.25"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    for _ in range(300):
        with socket.socket() as one:
            if process.poll() is not None or one.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    return process


def test_every_confirmed_verdict_outlives_the_database(
    review_environment: dict[str, str], world: ReviewWorld, tmp_path: Path
) -> None:
    port = free_port()
    address = f"mongodb://127.0.0.1:{port}/?serverSelectionTimeoutMS=2000"
    environment = {**review_environment, "FIFTYONE_DATABASE_URI": address}
    command = [sys.executable, "-c", REVIEWED, str(tmp_path / "review")]
    database = started(port, tmp_path / "db")
    try:
        given = [str(world.annotations), str(world.photos), str(10**6)]
        with subprocess.Popen(
            [*command, *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as program:  # fmt: skip
            assert program.stdout is not None
            lines = [program.stdout.readline() for _ in range(4)]
            database.kill()
            database.wait(timeout=30)
            out, err = program.communicate(timeout=100)
            lines += out.splitlines()
        assert program.returncode == 2, err[-2000:]
        assert "Traceback" not in err
        assert "the database" in out
        confirmed = sum(line.strip().isdigit() for line in lines)
        rows = read_decisions(tmp_path / "review/decisions.jsonl").decisions
        assert len(rows) >= 3 * confirmed >= 12
        database = started(port, tmp_path / "db")
        # What the database had not written to its disk is made again from the sources and the log.
        anew = [*command, *given[:-1], "4"]
        again = subprocess.run(anew, capture_output=True, text=True, env=environment, check=False)
        assert again.returncode == 0, again.stdout + again.stderr[-2000:]
        assert again.stdout.splitlines()[-1] == "verdicts 12"
    finally:
        database.kill()
        database.wait(timeout=30)
