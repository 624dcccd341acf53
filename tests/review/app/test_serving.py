"""The App is its reviewer's alone, the database has no port, and no second review takes over what answers already."""

import contextlib
import http.client
import importlib.util
import json
import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from curation.cli import main
from curation.core.errors import ReviewError, UsageError
from curation.review.app.serving import find_port
from curation.review.decisions.files import read_decisions
from tests.review.app.database import find_program
from tests.review.app.review_world import ReviewWorld, write_world

EVERY = "0.0.0.0"  # noqa: S104  (what must not be listened at)
LINUX = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="sockets are read as Linux shows them")


@contextmanager
def listening() -> Iterator[int]:
    """A program of somebody else at a port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_in_use_is_one_error_at_once() -> None:
    with listening() as port:
        started = time.monotonic()
        with pytest.raises(ReviewError, match=f"Port {port} is not free") as caught:
            find_port(str(port))
        assert time.monotonic() - started < 30
    assert caught.value.found == "another program answers"
    assert "--port 0" in str(caught.value)
    assert find_port(str(port)) == port


@pytest.mark.parametrize("port", ["next", "-1", "65536", "http", "", "٣", "1e3", "9" * 5000])
def test_what_is_no_port(port: str) -> None:
    with pytest.raises(UsageError, match="Not a port number"):
        find_port(port)


def test_a_review_refuses_a_foreign_port_before_it_builds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = write_world(tmp_path / "world")
    given = ["--source", f"coco={world.annotations}", "--photos", str(world.photos)]
    with listening() as port:
        given += ["--reviewer", "anna", "--port", str(port)]
        assert main(["review", "start", "--folder", str(tmp_path / "r"), *given]) == 2
    told = capsys.readouterr().err
    assert f"error: Port {port} is not free" in told
    assert "another program" in told
    assert not (tmp_path / "r").exists()


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment that FiftyOne takes for a container, with a database of FiftyOne's own."""
    # Not imported here: it would be set up for this user's database.
    if importlib.util.find_spec("fiftyone") is None:
        pytest.skip("FiftyOne is absent: pip install '.[review]'")
    if find_program() is None:
        pytest.skip("no mongod is at hand: pip install '.[mongo]'")
    folder = tmp_path_factory.mktemp("container")
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(
        "import os.path\nreal = os.path.exists\nos.path.exists = lambda one: one == '/.dockerenv' or real(one)\n"
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FIFTYONE")}
    environment |= {
        "HOME": str(folder),
        "FIFTYONE_DEFAULT_APP_ADDRESS": EVERY,
        # Where somebody's FiftyOne runs already, its database program is taken: the data are told apart by name.
        "FIFTYONE_DATABASE_NAME": f"container_{os.getpid()}",
        "FIFTYONE_DO_NOT_TRACK": "true",
        "PYTHONPATH": os.pathsep.join([str(folder / "site"), str(Path(__file__).parents[3])]),
    }
    return environment


def command(folder: Path, reviewer: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "curation", "review", "start", "--folder", str(folder), "--reviewer", reviewer, *more]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ReviewWorld:
    return write_world(tmp_path_factory.mktemp("world"))


@dataclass(frozen=True)
class Served:
    """A review that runs: its process, what it printed until it served, and how to ask it."""

    program: "subprocess.Popen[str]"
    told: str
    port: int
    token: str

    def ask(self, path: str, method: str = "GET", data: object = None, /, **headers: str) -> tuple[int, str, str]:
        """Return status, address that it sends one on to, and answer; with the token's cookie unless told otherwise."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = {"cookie": f"curation_review_{self.port}={self.token}"} | headers
        sent = {name.replace("_", "-"): value for name, value in given.items() if value}
        body = data if isinstance(data, str | None) else json.dumps(data)
        with contextlib.closing(connection):
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            # A stream of events has no end.
            said = answer.read(200) if "event-stream" in answer.getheader("content-type", "") else answer.read()
        return answer.status, answer.getheader("location", ""), said.decode(errors="replace")

    def judge(self, dataset: str, verdict: str, ids: list[str], **more: object) -> dict[str, Any]:
        """Give a verdict as a key does."""
        asked = {"dataset_name": dataset, "ids": ids, "verdict": verdict, **more}
        status, _, said = self.ask("/review/judge", "POST", asked)
        assert status == 200, said
        return dict(json.loads(said))

    def samples(self, dataset: str, first: int = 20) -> dict[str, str]:
        """Return the image of some samples, by their id in the database."""
        asked = "... on SampleItemStrConnection {edges {node {... on ImageSample {id sample}}}}"
        query = f'{{samples(dataset: "{dataset}", view: [], first: {first}) {{{asked}}}}}'
        status, _, said = self.ask("/graphql", "POST", {"query": query}, content_type="application/json")
        assert status == 200, said
        nodes = [edge["node"] for edge in json.loads(said)["data"]["samples"]["edges"]]
        return {node["id"]: node["sample"]["image_id"] for node in nodes}


def started(environment: dict[str, str], folder: Path, *more: str, reviewer: str = "anna") -> Served:
    """Start a review at a free port, and wait until it serves."""
    asked = command(folder, reviewer, *more, "--port", "0", *(() if "BROWSER" in environment else ("--remote",)))
    program = subprocess.Popen(
        asked,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environment,
        # Tests that a script runs in the background ignore Ctrl-C, and hand that on.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert program.stderr is not None
    told = ""
    for line in program.stderr:
        told += line
        if line.startswith("The App is at"):
            break
    found = re.search(r"The App is at http://127\.0\.0\.1:(\d+)/\?token=(\S+) ; Ctrl-C ends it", told)
    if not found:
        program.kill()
        program.communicate()
    assert found, told
    return Served(program, told, int(found[1]), found[2])


def ended(served: Served, how: signal.Signals) -> str:
    """End a server and return what it said at last."""
    served.program.send_signal(how)
    return served.program.communicate(timeout=60)[1]


RECORD = """
import json, os, sys, urllib.request
page = sys.argv[1]
path = urllib.request.url2pathname(page.removeprefix("file://"))
modes = [oct(os.stat(one).st_mode & 0o7777) for one in (os.path.dirname(path), path)]
command = open("/proc/self/cmdline").read() if os.path.exists("/proc") else " ".join(sys.argv)
seen = {"command": command, "environment": dict(os.environ), "path": path, "modes": modes, "page": open(path).read()}
with open(%r, "w") as stream:
    stream.write(json.dumps(seen) + "\\n")
"""


@dataclass(frozen=True)
class Browser:
    """What a browser was started with: its command line, its environment, and the page that it was asked to open."""

    command: str
    environment: dict[str, str]
    path: str
    modes: list[str]
    page: str

    @property
    def address(self) -> str:
        """Return where the page leads to, below its server."""
        found = re.search(r"url=http://127\.0\.0\.1:\d+(/\?token=[\w-]+)\"", self.page)
        assert found, self.page
        return found[1]


def recording_browser(folder: Path) -> str:
    """Return a value of ``BROWSER``: a program that writes down what it was started with."""
    program = folder / "browser.py"
    program.write_text(RECORD % str(folder / OPENED))
    return f"{sys.executable} {program} %s"


def started_browser(folder: Path) -> Browser:
    """Return what the browser was started with; it is started while the server works."""
    for _ in range(600):
        if (folder / OPENED).exists() and (found := (folder / OPENED).read_text()).endswith("\n"):
            return Browser(**json.loads(found))
        time.sleep(0.1)
    raise AssertionError("no browser was started")


@contextmanager
def serving(environment: dict[str, str], folder: Path, *more: str, reviewer: str = "anna") -> Iterator[Served]:
    one = started(environment, folder, *more, reviewer=reviewer)
    try:
        yield one
    finally:
        said = ended(one, signal.SIGTERM)
    assert "every decision is in the log" in said
    assert one.program.returncode == 0


class Harm:
    """Writes a file where it is unpickled, as FiftyOne's service unpickles whatever arrives."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.path, "harmed")


def listening_sockets(process: int) -> list[Any]:
    """Return the address of every socket that a process and its descendants listen at: ports, and paths of files."""
    psutil = pytest.importorskip("psutil")
    parent = psutil.Process(process)
    ports, files = set[Any](), set[Any]()
    for each in (parent, *parent.children(recursive=True)):
        # A child may end meanwhile, and listens at nothing then.
        with contextlib.suppress(psutil.NoSuchProcess):
            ports |= {tuple(one.laddr) for one in each.net_connections("inet") if one.status == "LISTEN"}
            # psutil lists all sockets with a name, and those alone can be reached from elsewhere.
            files |= {one.laddr for one in each.net_connections("unix") if one.laddr}
    return [*ports, *files]


INSERT = """
import sys, pymongo
limits = dict.fromkeys(("serverSelectionTimeoutMS", "connectTimeoutMS", "socketTimeoutMS"), 1000)
for uri in sys.argv[1:]:
    try:
        pymongo.MongoClient(uri, **limits).x.y.insert_one({})
    except pymongo.errors.PyMongoError:
        print("refused")
"""


def attack(addresses: Sequence[Any], harm: bytes) -> None:
    """Send what does harm where it is unpickled, and ask for a database without a password."""
    names = []
    for address in addresses:
        with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as one:
            one.settimeout(3)
            one.connect(address)
            one.sendall(harm)
            one.shutdown(socket.SHUT_WR)
            with suppress(OSError):
                one.recv(100)
        names.append(quote(address, safe="") if isinstance(address, str) else f"{address[0]}:{address[1]}")
    # In a process of its own: what the client leaves open goes with it.
    asked = [sys.executable, "-c", INSERT, *(f"mongodb://{name}" for name in names)]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "refused\n" * len(names)


@pytest.mark.mongo
@pytest.mark.slow
@LINUX
def test_two_reviews_of_one_name_are_two_and_nobody_gets_in(
    container: dict[str, str], world: ReviewWorld, tmp_path: Path
) -> None:
    harmed = tmp_path / "harmed"
    harm = pickle.dumps(Harm(harmed))
    pickle.loads(harm)  # noqa: S301  (what is attacked with does harm)
    harmed.unlink()
    given = ("--source", f"coco={world.annotations}", "--photos", str(world.photos))
    one, other = tmp_path / "a" / "same", tmp_path / "b" / "same"
    with serving(container, one, *given) as first:
        second = started(container, other, *given)
        try:
            open_to_all: list[Any] = []
            for served in (first, second):
                (app, database) = listening_sockets(served.program.pid)
                assert app == ("127.0.0.1", served.port)
                assert Path(database).parent.stat().st_mode & 0o777 == 0o700
                open_to_all += app, database
            attack(open_to_all, harm)
            assert not harmed.exists()
            second.judge("same", "near", list(second.samples("same"))[:3])
            assert not (one / "decisions.jsonl").exists()
        finally:
            second.program.kill()
            second.program.communicate()
        # Its database ends with it, and nothing of it is in the way of the next start.
        with serving(container, other) as again:
            assert again.judge("same", "near", list(again.samples("same"))[:4])["images"] == 1
            assert listening_sockets(again.program.pid)[1] != database
        assert not Path(database).parent.exists()
    assert {path.name for path in other.iterdir()} <= {"review.json", "decisions.jsonl", "database", "plugins"}


OTHER_USER = """
import json, os, socket, sys, urllib.error, urllib.request
secrets, paths, sockets, ports = json.loads(sys.stdin.read())
assert os.getuid() != 0
gained = []
for process in filter(str.isdigit, os.listdir("/proc")):
    for name in ("cmdline", "environ"):
        try:
            text = open(f"/proc/{process}/{name}").read()
        except (OSError, ValueError):
            continue
        gained += [f"{name} of {process}" for secret in secrets if secret in text]
for path in paths:
    for attempt in (os.listdir, lambda path: open(path, "rb").read(1)):
        try:
            attempt(path)
            gained.append(path)
        except OSError:
            pass
for path in sockets:
    with socket.socket(socket.AF_UNIX) as one:
        try:
            one.connect(path)
            gained.append(path)
        except OSError:
            pass
for port in ports:
    for path in ("/", "/datasets/private", "/fiftyone", "/assets/index.js", "/media?filepath=" + paths[-1]):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20)
            gained.append(path)
        except urllib.error.HTTPError as error:
            if error.code != 401:
                gained.append(path)
print(json.dumps(gained))
"""
NOBODY = 65534


@pytest.mark.mongo
@pytest.mark.slow
@LINUX
def test_no_secret_is_in_a_command_line_an_environment_or_a_file_of_others(
    container: dict[str, str], world: ReviewWorld, tmp_path: Path
) -> None:
    psutil = pytest.importorskip("psutil")
    given = ("--source", f"coco={world.annotations}", "--photos", str(world.photos))
    environment = {**container, "BROWSER": recording_browser(tmp_path)}
    with (
        serving(environment, tmp_path / "private", *given) as served,
        serving(container, tmp_path / "private", reviewer="ben") as second,
    ):
        browser = started_browser(tmp_path)
        (_, database) = listening_sockets(served.program.pid)
        key = Path(database).with_name("key")
        secrets = [served.token, second.token, browser.address.partition("=")[2], key.read_text()]
        assert len({*secrets, ""}) == 5
        processes = [psutil.Process(each.program.pid) for each in (served, second)]
        processes += [child for each in [*processes] for child in each.children(recursive=True)]
        assert {"mongod"} < {one.name() for one in processes}
        texts = [browser.command, *browser.environment.values()]
        texts += [word for one in processes for word in (*one.cmdline(), *one.environ().values())]
        assert not [text for text in texts if any(secret in text for secret in secrets)]
        assert not [text for text in texts if "mongodb://" in text]
        # The page that leads to the App: a folder and a file of this user alone.
        assert browser.modes == ["0o700", "0o600"]
        assert served.token not in browser.page
        mongod = next(one for one in processes if one.name() == "mongod")
        assert "--noscripting" in mongod.cmdline()
        paths = [str(Path(browser.path).parent), browser.path, str(Path(database).parent), str(key)]
        paths += [str(tmp_path / "private" / "database"), str(sorted(world.photos.iterdir())[0])]
        asked = json.dumps([secrets, paths, [database], [served.port, second.port]])
        if os.geteuid() == 0 and (python := shutil.which("python3", path="/usr/bin:/usr/local/bin")):
            # The photos of this test lie below a folder that no other user can enter.
            done = subprocess.run(
                [python, "-c", OTHER_USER], input=asked, capture_output=True, text=True, check=True, cwd="/",
                user=NOBODY, group=NOBODY, extra_groups=[], env={},
            )  # fmt: skip
            assert json.loads(done.stdout) == []
        # A browser that comes from a page in a file keeps the cookie only if a page of this server leads on.
        status, location, said = served.ask(browser.address, cookie="", sec_fetch_site="cross-site",
                                            sec_fetch_mode="navigate")  # fmt: skip
        assert (status, location) == (200, "")
        assert 'url=/datasets/private?view=to-decide-anna"' in said
        assert served.ask(browser.address, cookie="")[0] == 401
    assert not Path(browser.path).parent.exists()


OPENED = "opened.txt"
STAGES, AGGREGATIONS = "fiftyone.core.stages", "fiftyone.core.aggregations"
MADE = {"_cls": "planted.Run", "kwargs": []}


def stage(name: str, **arguments: object) -> dict[str, Any]:
    """Return a stage of a view as the App sends it."""
    return {"_cls": f"{STAGES}.{name}", "kwargs": [[key, value] for key, value in arguments.items()]}


def _on_closed(path: str, **more: object) -> tuple[str, object]:
    return path, {"dataset": "closed", "path": "batch", "view": [], **more}


def _query(text: str, **variables: object) -> tuple[str, object]:
    return "/graphql", {"query": text, "variables": variables}


def _operator(name: str, **more: object) -> tuple[str, object]:
    return "/operators/execute", {"operator_uri": f"@curation/review/{name}", "dataset_name": "closed", **more}


def _mongo(*steps: object) -> tuple[str, object]:
    return _on_closed("/values", view=[stage("Mongo", pipeline=list(steps))])


_SAMPLES = '{samples(dataset: "closed", first: 1, '
_SET_VIEW = 'setView(subscription: "", datasetName: "closed", '
_STATE = {"state": {"dataset": "closed", "view": [MADE], "config": {}}}
_PLOT = {"datasetName": "closed", "brainKey": "x", "labelField": None, "slices": None}
_PROGRAM = {"$function": {"body": "function() { return 1 }", "args": [], "lang": "js"}}
_OTHER = {"dataset_id": "5f0000000000000000000000", "stages": []}
ATTACKS: dict[str, tuple[str, object]] = {
    "an aggregation": _on_closed("/aggregate", aggregations=[MADE]),
    "an aggregation in another": _on_closed(
        "/aggregate",
        aggregations=[
            {"_cls": f"{AGGREGATIONS}.FacetAggregations", "kwargs": [["field_name", "x"], ["aggregations", [MADE]]]}
        ],
    ),
    "a function of a module of stages": _on_closed("/values", view=[{"_cls": f"{STAGES}.reprlib.aRepr", "kwargs": []}]),
    "a view of aggregate": _on_closed("/aggregate", view=[MADE]),
    "a view of values": _on_closed("/values", view=[MADE]),
    "a view of sort": _on_closed("/sort", view=[MADE], extended={}),
    "a view of tagging": _on_closed("/tagging", view=[MADE]),
    "a view of geo": _on_closed("/geo", view=[MADE]),
    "a view of embeddings": ("/embeddings/plot", {**_PLOT, "view": [MADE]}),
    "a view of new embeddings": ("/embeddings/v2/masks", {**_PLOT, "view": [MADE]}),
    "extended stages of values": _on_closed("/values", extended={"planted.Run": {}}),
    "extended stages of embeddings": (
        "/embeddings/selection",
        {**_PLOT, "view": [], "filters": {}, "extended": {"planted.Run": {}}, "extendedSelection": None},
    ),
    "a stage in a stage": _on_closed("/values", view=[stage("Flatten", stages=[MADE])]),
    "a stage in a joined view": _on_closed("/values", view=[stage("Concat", samples={"stages": [MADE]})]),
    "an event": ("/event", {"subscription": "x", "event": "state_update", "data": _STATE}),
    "a text of an event": ("/event", {"subscription": "x", "event": "state_update", "data": json.dumps(_STATE)}),
    "an initializer": ("/events", {"subscription": "x", "events": [], "initializer": _STATE["state"]}),
    "an operator's view": _operator("in_order", view=[MADE]),
    "an operator's extended stages": _operator("in_order", extended={"planted.Run": {}}),
    "an operator's parameter": _operator("in_order", params={"deep": [{"deeper": MADE}]}),
    "an operator's layout": _operator("in_order", spaces={"_cls": "planted.Run", "children": []}),
    "a placement": ("/operators/resolve-placements", {"dataset_name": "closed", "view": [MADE]}),
    "a variable": _query("query($v: BSONArray!)" + _SAMPLES + "view: $v){__typename}}", v=[MADE]),
    "a part of a variable": _query(
        "query($c: String)" + _SAMPLES + "view: [{_cls: $c, kwargs: []}]){__typename}}", c="planted.Run"
    ),
    "a default": _query('query($v: BSONArray! = [{_cls: "planted.Run"}])' + _SAMPLES + "view: $v){__typename}}"),
    "stages to add": _query(
        "mutation($f: StateForm){" + _SET_VIEW + "form: $f)}", f={"addStages": [{"_cls": "planted.Run"}]}
    ),
    "extended stages of a form": _query(
        "mutation($f: StateForm){" + _SET_VIEW + "form: $f)}", f={"extended": {"planted.Run": {}}}
    ),
    "a saved view": _query(
        'mutation($v: BSONArray){createSavedView(subscription: "", viewName: "closed", viewStages: $v){id}}', v=[MADE]
    ),
    "a layout": _query(
        'mutation($s: BSON!){setSpaces(subscription: "", spaces: $s)}', s={"_cls": "planted.Run", "children": []}
    ),
    "a disguised class": _on_closed("/values", view=[{"_cls": {"$symbol": "planted.Run"}, "kwargs": []}]),
    "a class as code": _on_closed("/values", view=[{"_cls": {"$code": "planted.Run"}, "kwargs": []}]),
    "a list of classes": _on_closed("/values", view=[{"_cls": ["planted.Run"], "kwargs": []}]),
    "a key twice": (
        "/values",
        '{"dataset": "closed", "path": "batch", "view": [{"_cls": "planted.Run", "kwargs": [], "_cls": "Space"}]}',
    ),
    "a key that is spelled otherwise": (
        "/values",
        '{"dataset": "closed", "path": "batch", "view": [{"\\u005fcls": "planted.Run", "kwargs": []}]}',
    ),
    "a writing step": _mongo({"$out": "made"}),
    "a merging step": _mongo({"$merge": {"into": "made"}}),
    "a step that joins": _mongo({"$lookup": {"from": "datasets", "pipeline": [], "as": "x"}}),
    "a step that reads another collection": _mongo({"$unionWith": "datasets"}),
    "a step in a step": _mongo({"$facet": {"x": [{"$lookup": {"from": "datasets", "pipeline": [], "as": "x"}}]}}),
    "a program": _mongo({"$addFields": {"x": _PROGRAM}}),
    "a program in a filter": _on_closed("/values", view=[stage("Match", filter={"$where": "sleep(9)"})]),
    "a program of an aggregation": _on_closed(
        "/aggregate", aggregations=[{"_cls": f"{AGGREGATIONS}.Values", "kwargs": [["field_or_expr", _PROGRAM]]}]
    ),
    "another dataset": _on_closed("/values", view=[stage("Concat", samples=_OTHER)]),
    "another dataset by name": _on_closed("/values", view=[stage("Concat", samples={"dataset": "x", "stages": []})]),
    "the runs of another dataset": ("/embeddings/v2/runs-status", {"datasetId": "5f0000000000000000000000"}),
    "the state of another dataset": (
        "/event",
        {"subscription": "x", "event": "state_update", "data": {"state": {"dataset": "another"}}},
    ),
    "the page of another dataset": ("/events", {"subscription": "x", "events": [], "initializer": {"dataset": "x"}}),
    "a field to write": _on_closed("/sort", extended={"brain_key": "x", "query": "x", "dist_field": "verdict"}),
    "a class in the address": ("/values?view=" + quote(json.dumps([MADE])), {"dataset": "closed", "path": "batch"}),
}
"""Requests that bear the token: FiftyOne would import what they name, run or write it, or read another dataset."""


@pytest.fixture(scope="module")
def server(
    review_environment: dict[str, str], world: ReviewWorld, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Served, Path]]:
    """Anna's server of a blind review, which no test ends, and its folder; what a browser opens is beside.

    Cleo's server of the same review runs meanwhile.
    """
    folder = tmp_path_factory.mktemp("served") / "closed"
    given = ("--source", f"coco={world.annotations}", "--photos", str(world.photos), "--blind")
    # A class that leaves a mark where it is made, and a module that leaves one where it is imported.
    code = "from pathlib import Path\nPath(__file__).with_name('mark').touch()\nclass Run:\n    pass\n"
    folder.with_name("planted.py").write_text(code)
    path = os.pathsep.join([review_environment["PYTHONPATH"], str(folder.parent)])
    environment = {**review_environment, "BROWSER": recording_browser(folder.parent), "PYTHONPATH": path}
    with serving(environment, folder, *given) as one:
        cleo = started({**review_environment, "PYTHONPATH": path}, folder, reviewer="cleo")
        try:
            yield one, folder
        finally:
            ended(cleo, signal.SIGTERM)


@pytest.mark.mongo
class TestAnAppThatIsClosed:
    def test_another_host_page_or_nobody_gets_nothing(self, server: tuple[Served, Path]) -> None:
        one, _ = server
        for path in ("/", "/datasets/closed", "/fiftyone", "/media?filepath=/etc/hostname", "/assets/x.js"):
            assert one.ask(path, host="evil.example")[0] == 421
            assert one.ask(path, host=f"evil.example:{one.port}")[0] == 421
            assert one.ask(path, origin="http://evil.example")[0] == 403
            assert one.ask(path, origin="null")[0] == 403
            assert one.ask(path, sec_fetch_site="same-site", sec_fetch_mode="no-cors")[0] == 403
            assert one.ask(path, cookie="")[0] == 401
            assert one.ask(path, cookie=f"curation_review_{one.port}=x")[0] == 401
            assert one.ask(path, cookie=f"curation_review_1={one.token}")[0] == 401
        assert one.ask("/fiftyone", host=f"localhost:{one.port}", origin=f"http://localhost:{one.port}")[0] == 200

    def test_events_and_commands_need_the_token_too(self, server: tuple[Served, Path]) -> None:
        one, folder = server
        log = folder / "decisions.jsonl"
        before = log.exists() and log.read_bytes()
        asked = {"subscription": "x", "events": ["state_update"], "initializer": {"dataset": "closed"}}
        assert one.ask("/events", "POST", asked, cookie="")[0] == 401
        status, _, said = one.ask("/events", "POST", asked)
        assert (status, said[:6]) == (200, "event:")
        keep = {"verdict": "keep", "dataset_name": "closed", "ids": list(one.samples("closed"))}
        for headers in ({"cookie": ""}, {"origin": "http://evil.example"}, {"host": "evil.example"}):
            assert one.ask("/review/judge", "POST", keep, content_type="text/plain", **headers)[0] in (401, 403, 421)
        assert (log.exists() and log.read_bytes()) == before

    def test_a_websocket_is_refused_with_or_without_token(self, server: tuple[Served, Path]) -> None:
        one, _ = server
        upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec_websocket_version": "13"}
        for cookie in ({}, {"cookie": ""}):
            assert one.ask("/graphql", sec_websocket_key="dGhlIHNhbXBsZSBub25jZQ==", **upgrade, **cookie)[0] == 403

    def test_the_token_is_taken_once_and_leaves_the_address(self, server: tuple[Served, Path]) -> None:
        one, _ = server
        for path, then in (
            ("/", "/datasets/closed?view=to-decide-anna"),
            ("/datasets/closed", "/datasets/closed"),
            ("//a.example", "/a.example"),
        ):
            assert one.ask(f"{path}?token={one.token}", cookie="")[:2] == (303, then)
            assert one.ask(f"{path}?token={one.token[:-1]}", cookie="")[0] == 401
        connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=60)
        connection.request("GET", f"/datasets/closed?view=to-decide&token={one.token}")
        answer = connection.getresponse()
        assert answer.getheader("location") == "/datasets/closed?view=to-decide"
        cookie = answer.getheader("set-cookie", "")
        assert cookie == f"curation_review_{one.port}={one.token}; Path=/; HttpOnly; SameSite=Strict"
        connection.close()

    def test_only_photos_of_the_dataset_are_handed_out(
        self, server: tuple[Served, Path], world: ReviewWorld, tmp_path: Path
    ) -> None:
        one, folder = server
        photo = sorted(world.photos.iterdir())[0]
        (tmp_path / "link.jpg").symlink_to("/etc/hostname")
        (tmp_path / "same.jpg").symlink_to(photo)
        for path in (photo, photo.parent / ".." / photo.parent.name / photo.name, tmp_path / "same.jpg"):
            assert one.ask(f"/media?filepath={quote(str(path))}")[0] == 200
        for path in (
            "/etc/hostname",
            folder / "review.json",
            world.annotations,
            photo.parent,
            tmp_path / "link.jpg",
            "",
        ):
            status, _, said = one.ask(f"/media?filepath={quote(str(path))}")
            assert (status, "Only files of the dataset" in said) == (403, True)
        # Which of two would be read is FiftyOne's choice.
        assert one.ask(f"/media?filepath={quote(str(photo))}&filepath=/etc/hostname")[0] == 403

    @pytest.mark.parametrize(
        ("method", "path", "data"),
        [
            ("POST", "/tag", {}),
            ("PUT", "/tag", {}),
            ("GET", "/graphql?query={uid}", None),
            ("GET", "/datasets/another", None),
            ("GET", "/dataset/5f0000000000000000000000/sample/5f0000000000000000000000/intrinsics", None),
            ("GET", "/plugins/operators.py", None),
            ("GET", "/screenshot/x", None),
            ("POST", "/dataset/5f0000000000000000000000/sample/5f0000000000000000000000/commit-mask", {}),
            ("PATCH", "/dataset/5f0000000000000000000000/sample/5f0000000000000000000000", []),
            ("POST", "/operators/execute", {"operator_uri": "@voxel51/operators/list_files"}),
            ("POST", "/operators/execute", {"operator_uri": "@voxel51/operators/delete_sample_field"}),
            ("POST", "/operators/execute", {"operator_uri": {"$symbol": "@voxel51/operators/list_files"}}),
            ("POST", "/operators/execute", {"operator_uri": "@curation/review/about", "dataset_name": "another"}),
            ("POST", "/operators/resolve-type", {"operator_uri": "@voxel51/operators/list_files"}),
            ("POST", "/values", {"dataset": {"$symbol": "another"}}),
            ("POST", "/graphql", {"query": "mutation{deleteSavedView(viewName: 1)}"}),
            ("POST", "/graphql", {"query": "mutation{setView: updateSavedView(viewName: 1)}"}),
            ("POST", "/graphql", {"query": "mutation{...setView} fragment setView on Mutation{deleteSavedView}"}),
            ("POST", "/graphql", {"query": "mutation{setView ... on Mutation{deleteSavedView}}"}),
            ("POST", "/graphql", {"query": 'mutation{setDataset(name: "another")}'}),
            ("POST", "/graphql", {"query": '{dataset(name: """another"""){name}}'}),
            ("POST", "/graphql", {"query": '{dataset(name: "\\u0061nother"){name}}'}),
            ("POST", "/graphql", {"query": 'query($n: String = "another"){dataset(name: $n){name}}'}),
            (
                "POST",
                "/graphql",
                {"query": "query($n: String){dataset(name: $n){name}}", "variables": {"n": "another"}},
            ),
            ("POST", "/graphql", {"query": "query($f: F){x(form: $f)}", "variables": {"f": {"dataset": "another"}}}),
            ("POST", "/graphql", {"query": "query($n: String){x(form: {dataset: $n})}", "variables": {"n": "another"}}),
            ("POST", "/graphql", {"query": "{"}),
            ("POST", "/graphql", {"query": "{a" * 9000}),
            ("POST", "/graphql", {}),
            ("POST", "/graphql", "[" * 9000),
            ("POST", "/tag?x=1", {}),
            ("POST", "//values", {"dataset": "closed"}),
            ("TRACE", "/fiftyone", None),
            ("OPTIONS", "/fiftyone", None),
            ("POST", "/values", {"dataset": "another"}),
            *(pytest.param("POST", path, data, id=name) for name, (path, data) in ATTACKS.items()),
        ],
    )
    def test_an_attack_is_refused(self, server: tuple[Served, Path], method: str, path: str, data: object) -> None:
        one, folder = server
        status, _, said = one.ask(path, method, data, content_type="application/json")
        assert (status, said.count("This is a curation review")) in ((403, 1), (403, 2), (400, 2)), said
        assert not folder.with_name("mark").exists()

    def test_the_planted_module_leaves_a_mark(self, server: tuple[Served, Path], tmp_path: Path) -> None:
        (tmp_path / "planted.py").write_bytes(server[1].with_name("planted.py").read_bytes())
        subprocess.run([sys.executable, "-c", "import planted"], check=True, cwd=tmp_path)
        assert (tmp_path / "mark").exists()

    def test_what_the_app_asks_passes(self, server: tuple[Served, Path]) -> None:
        """Views, questions, layouts and texts of the App's own kind, the same routes as the attacks."""
        one, _ = server
        limit = stage("Limit", limit=4)
        facet = {"_cls": f"{AGGREGATIONS}.Count", "kwargs": [["field_or_expr", "batch"]]}
        asked = {"dataset": "closed", "view": [limit], "aggregations": [facet], "filters": {}}
        assert json.loads(one.ask("/aggregate", "POST", asked)[2]) == {"aggregate": [4]}
        asked = {"dataset": "closed", "view": [limit], "path": "batch", "search": '[{"_cls'}
        assert one.ask("/values", "POST", asked)[0] == 200
        asked = {"dataset": "closed", "view": [], "path": "batch", "extended": {f"{STAGES}.Limit": {"limit": 3}}}
        assert json.loads(one.ask("/values", "POST", asked)[2])["values"] == [{"value": "0001", "count": 3}]
        layout = {"_cls": "Space", "children": [{"_cls": "Panel", "type": "Samples", "state": {}}]}
        asked = {
            "query": 'mutation($x: BSON!){setSpaces(subscription: "", session: "", spaces: $x)}',
            "variables": {"x": layout},
        }
        status, _, said = one.ask("/graphql", "POST", asked, content_type="application/json")
        assert (status, said) == (200, '{"data": {"setSpaces": true}}')

    def test_the_token_is_in_no_file(self, server: tuple[Served, Path]) -> None:
        one, folder = server
        assert one.told.count(one.token) == 1
        assert not [path for path in folder.rglob("*") if path.is_file() and one.token in path.read_text()]


@pytest.mark.mongo
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_two_reviewers_are_two_servers_and_a_kill_loses_no_verdict(
    server: tuple[Served, Path], review_environment: dict[str, str], fiftyone: Any
) -> None:
    anna, folder = server
    ben = started(review_environment, folder, reviewer="ben")
    try:
        ids = list(anna.samples(folder.name))
        # The address in the page of the browser is good for one page.
        once = started_browser(folder.parent).address
        assert anna.token not in once
        assert [anna.ask(once, cookie="")[0] for _ in range(2)] == [303, 401]
        # No parameter and no state of a panel names another reviewer.
        refused = anna.judge(folder.name, "near", ids[:3], reviewer="eve")
        assert (refused["images"], "fixed when the server starts" in refused["message"]) == (0, True)
        named = {"panel_state": {"reviewer": "eve"}, "user_id": "eve"}
        assert anna.judge(folder.name, "near", ids[:3], **named)["images"] == 3
        assert ben.judge(folder.name, "far", ids[2:5])["images"] == 3
        assert ended(ben, signal.SIGKILL) == ""
        assert anna.judge(folder.name, "unsure", ids[5:6])["images"] == 1
        ben = started(review_environment, folder, reviewer="ben")
        # A page that is still open is cut off without a word.
        page = http.client.HTTPConnection("127.0.0.1", ben.port, timeout=60)
        asked = {"subscription": "x", "events": ["state_update"], "initializer": {"dataset": folder.name}}
        page.request("POST", "/events", json.dumps(asked), {"cookie": f"curation_review_{ben.port}={ben.token}"})
        assert page.getresponse().status == 200
        said = ended(ben, signal.SIGINT)
        assert ("every decision is in the log" in said, "Traceback" in said) == (True, False)
        page.close()
    finally:
        ben.program.kill()
        ben.program.communicate()
    rows = read_decisions(folder / "decisions.jsonl").decisions
    assert [(row.reviewer, row.action) for row in rows] == [
        *[("anna", "to_near")] * 3,
        *[("ben", "to_far")] * 3,
        ("anna", "unsure"),
    ]


KILLS = int(os.environ.get("CURATION_REVIEW_KILLS", "2"))


@pytest.mark.mongo
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_kill_at_any_moment_loses_no_acknowledged_decision(
    review_environment: dict[str, str], world: ReviewWorld, tmp_path: Path
) -> None:
    folder, acknowledged = tmp_path / "killed", 0
    more: tuple[str, ...] = ("--source", f"coco={world.annotations}", "--photos", str(world.photos))
    for kill in range(KILLS):
        served, more = started(review_environment, folder, *more), ()
        ids = list(served.samples("killed"))
        timer = threading.Timer(0.05 + 0.037 * kill, served.program.kill)
        with suppress(OSError, http.client.HTTPException):
            while True:
                # Each differs from the one before, so that it is a row.
                words = ("near", "far", "remove", "keep", "unsure")
                served.judge("killed", words[acknowledged // len(ids) % 5], [ids[acknowledged % len(ids)]],
                             reason=str(acknowledged))  # fmt: skip
                acknowledged += 1
                # From the first answer on: a busy machine takes longer than the first delay.
                if timer.ident is None:
                    timer.start()
        timer.join()
        served.program.communicate()
        reasons = [row.reason for row in read_decisions(folder / "decisions.jsonl").decisions]
        # One that was written and not acknowledged is given again.
        assert [int(reason) for reason in dict.fromkeys(reasons)][:acknowledged] == list(range(acknowledged))
    assert acknowledged >= KILLS


def test_a_review_needs_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ((), ("--photos", str(tmp_path))):
        assert main(["review", "start", "--folder", str(tmp_path / "r"), *more]) == 2
        told = capsys.readouterr().err
        assert "error: A review needs the name of its reviewer" in told
        assert "--reviewer NAME" in told
