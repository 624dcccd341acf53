"""A hub on this machine: the routes of the Hugging Face Hub that its client uses, over HTTP, with faults on demand."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

WRITER, READER = "hf_writer_0123456789", "hf_reader_0123456789"
_R = r"(?P<repo>[^/]+/[^/]+)"


def sha1(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def git_oid(data: bytes) -> str:
    return sha1(b"blob %d\0" % len(data) + data)


@dataclass
class Repository:
    """Commits of one branch, oldest first, each with all its files; and tags."""

    private: bool
    commits: list[tuple[str, dict[str, bytes]]]
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def head(self) -> str:
        return self.commits[-1][0]

    def files(self, revision: str) -> dict[str, bytes] | None:
        revision = self.tags.get(revision, self.head if revision == "main" else revision)
        return dict(self.commits).get(revision)

    def resolve(self, revision: str) -> str:
        return self.tags.get(revision, self.head if revision == "main" else revision)


@dataclass
class FakeHub:
    """State of the hub; `requests` is its log, `break_at` the route whose connection breaks, so many times."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    break_at: str = ""
    break_after: bool = False
    breaks: int = 0
    ignored: str = ""
    url: str = ""

    def commits(self, name: str) -> int:
        return len(self.repositories[name].commits)

    def count(self, route: str) -> int:
        return self.requests.count(route)


@contextmanager
def serving() -> Iterator[FakeHub]:
    hub = FakeHub()

    class Handler(_Handler):
        pass

    Handler.hub = hub
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"
    # One packet an answer: else each waits for an acknowledgement.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._route("GET")

    def do_HEAD(self) -> None:
        self._route("HEAD")

    def do_POST(self) -> None:
        self._route("POST")

    def do_PUT(self) -> None:
        self._route("PUT")

    def _route(self, method: str) -> None:
        parts = urlsplit(self.path)
        self.query = parse_qs(parts.query)
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        for verb, pattern, action in ROUTES:
            match = re.fullmatch(pattern, parts.path)
            if match and verb in (method, "GET" if method == "HEAD" else method):
                name = action.__name__.strip("_")
                self.hub.requests.append(name)
                if name == self.hub.break_at and self.hub.breaks and not self.hub.break_after:
                    return self._break()
                action(self, **{key: unquote(value) for key, value in match.groupdict().items() if value is not None})
                return None
        self._send(404, {"error": f"no route {method} {parts.path}"})
        return None

    def _break(self) -> None:
        self.hub.breaks -= 1
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _send(self, status: int, data: object, headers: dict[str, str] | None = None) -> None:
        name = self.hub.requests[-1] if self.hub.requests else ""
        if name == self.hub.break_at and self.hub.breaks and self.hub.break_after:
            return self._break()
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        return None

    def _refuse(self, status: int, code: str = "", message: str = "") -> None:
        headers = {"X-Error-Code": code} if code else {}
        self._send(status, {"error": message}, headers | ({"X-Error-Message": message} if message else {}))

    def _token(self) -> str:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ")

    def _may_write(self) -> bool:
        if self._token() == WRITER:
            return True
        if self._token() == READER:
            self._refuse(403, message="your token has no right to write here")
        else:
            self._refuse(401, message="Invalid credentials in Authorization header")
        return False

    def _repository(self, repo: str) -> Repository | None:
        found = self.hub.repositories.get(repo)
        token = self._token()
        if token not in ("", WRITER, READER):
            self._refuse(401, message="Invalid credentials in Authorization header")
        elif found is None or (found.private and not token):
            self._refuse(404, "RepoNotFound", "Repository not found")
        else:
            return found
        return None

    def _files(self, repo: str, revision: str) -> tuple[Repository, dict[str, bytes]] | None:
        found = self._repository(repo)
        if found is None:
            return None
        files = found.files(revision)
        if files is None:
            self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return None
        return found, files

    # Routes: their names without underscores are what `FakeHub.requests` holds.

    def _create(self) -> None:
        if not self._may_write():
            return None
        data = json.loads(self.body)
        name = f"{data['organization']}/{data['name']}"
        if name in self.hub.repositories:
            return self._refuse(409, message="You already created this dataset repo")
        private = data.get("visibility") == "private" or data.get("private") is True
        files = {".gitattributes": b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"}
        self.hub.repositories[name] = Repository(private, [(sha1(name.encode()), files)])
        return self._send(200, {"url": f"{self.hub.url}/datasets/{name}", "name": name})

    def _validate(self) -> None:
        text = json.loads(self.body)["content"]
        try:
            data = yaml.safe_load(text.split("---")[1])
            errors = [] if isinstance(data, dict) else [{"message": "no metadata"}]
        except yaml.YAMLError as error:
            errors = [{"message": str(error)}]
        self._send(400 if errors else 200, {"errors": errors, "warnings": []})

    def _info(self, repo: str, revision: str = "main") -> None:
        found = self._files(repo, revision)
        if found is None:
            return
        repository, files = found
        blobs = "blobs" in self.query
        siblings = [
            {"rfilename": path, **({"size": len(data), "blobId": git_oid(data)} if blobs else {})}
            for path, data in files.items()
        ]
        sha = repository.resolve(revision)
        self._send(200, {"id": repo, "sha": sha, "private": repository.private, "siblings": siblings, "tags": []})

    def _refs(self, repo: str) -> None:
        found = self._repository(repo)
        if found is None:
            return
        tags = [{"name": k, "ref": f"refs/tags/{k}", "targetCommit": v} for k, v in found.tags.items()]
        branch = {"name": "main", "ref": "refs/heads/main", "targetCommit": found.head}
        self._send(200, {"branches": [branch], "tags": tags, "converts": []})

    def _preupload(self, repo: str) -> None:
        if not self._may_write():
            return
        files = self.hub.repositories[repo].files("main") or {}
        answer = []
        for one in json.loads(self.body)["files"]:
            path = one["path"]
            large = path.endswith((".parquet", ".zip"))
            oid = None
            if path in files:
                oid = hashlib.sha256(files[path]).hexdigest() if large else git_oid(files[path])
            ignored = bool(self.hub.ignored) and path.endswith(self.hub.ignored)
            mode = "lfs" if large else "regular"
            answer.append({"path": path, "uploadMode": mode, "shouldIgnore": ignored, "oid": oid})
        self._send(200, {"files": answer})

    def _batch(self, repo: str) -> None:
        if not self._may_write():
            return
        objects = []
        for one in json.loads(self.body)["objects"]:
            there = one["oid"] in self.hub.large
            href = f"{self.hub.url}/lfs/{one['oid']}?X-Amz-Signature=secret"
            objects.append({**one, **({} if there else {"actions": {"upload": {"href": href}}})})
        self._send(200, {"transfer": "basic", "objects": objects})

    def _upload(self, oid: str) -> None:
        if hashlib.sha256(self.body).hexdigest() != oid:
            return self._refuse(400, message="the content is not that of the oid")
        self.hub.large[oid] = self.body
        return self._send(200, b"")

    def _commit(self, repo: str) -> None:
        if not self._may_write():
            return None
        repository = self.hub.repositories[repo]
        lines = [json.loads(line) for line in self.body.splitlines() if line]
        header = lines[0]["value"]
        if header.get("parentCommit") not in (None, repository.head):
            return self._refuse(412, message="A commit has happened since. Please refresh and try again.")
        files = dict(repository.commits[-1][1])
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.hub.large[value["oid"]]
            else:
                del files[value["path"]]
        oid = sha1(self.body + str(len(repository.commits)).encode())
        repository.commits.append((oid, files))
        return self._send(
            200, {"success": True, "commitOid": oid, "commitUrl": f"{self.hub.url}/datasets/{repo}/commit/{oid}"}
        )

    def _tag(self, repo: str, revision: str) -> None:
        if not self._may_write():
            return None
        repository = self.hub.repositories[repo]
        name = json.loads(self.body)["tag"]
        if name in repository.tags:
            return self._refuse(409, message="Tag reference exists already")
        repository.tags[name] = repository.resolve(revision)
        return self._send(200, {})

    def _settings(self, repo: str) -> None:
        if not self._may_write():
            return
        data = json.loads(self.body)
        public = data.get("visibility") == "public" or data.get("private") is False
        self.hub.repositories[repo].private = not public
        self._send(200, {})

    def _tree(self, repo: str, revision: str, folder: str = "") -> None:
        found = self._files(repo, revision)
        if found is None:
            return None
        prefix = f"{folder}/" if folder else ""
        inside = {path: data for path, data in found[1].items() if path.startswith(prefix)}
        if folder and not inside:
            return self._refuse(404, "EntryNotFound", "Entry not found")
        deep = self.query.get("recursive", ["false"])[0].lower() == "true"
        rows = [_file_row(path, data) for path, data in inside.items() if deep or "/" not in path[len(prefix) :]]
        names = {path[len(prefix) :].rpartition("/")[0] for path in inside if "/" in path[len(prefix) :]}
        tops = {name if deep else name.partition("/")[0] for name in names}
        rows += [{"type": "directory", "path": prefix + one, "oid": sha1(one.encode()), "size": 0} for one in tops]
        return self._send(200, sorted(rows, key=lambda row: str(row["path"])))

    def _paths(self, repo: str, revision: str) -> None:
        found = self._files(repo, revision)
        if found is None:
            return
        body = self.body.decode()
        asked = json.loads(body)["paths"] if body.startswith("{") else parse_qs(body)["paths"]
        rows = [_file_row(path, found[1][path]) for path in asked if path in found[1]]
        folders = [path for path in asked if any(one.startswith(f"{path}/") for one in found[1])]
        rows += [{"type": "directory", "path": one, "oid": sha1(one.encode()), "size": 0} for one in folders]
        self._send(200, rows)

    def _resolve(self, repo: str, revision: str, path: str) -> None:
        found = self._files(repo, revision)
        if found is None:
            return None
        repository, files = found
        if path not in files:
            return self._refuse(404, "EntryNotFound", "Entry not found")
        headers = {"X-Repo-Commit": repository.resolve(revision), "ETag": f'"{git_oid(files[path])}"'}
        return self._send(200, files[path], headers)


def _file_row(path: str, data: bytes) -> dict[str, object]:
    return {"type": "file", "path": path, "oid": git_oid(data), "size": len(data)}


Action = Callable[..., None]
ROUTES: list[tuple[str, str, Action]] = [
    ("POST", r"/api/repos/create", _Handler._create),
    ("POST", r"/api/validate-yaml", _Handler._validate),
    ("GET", rf"/api/datasets/{_R}", _Handler._info),
    ("GET", rf"/api/datasets/{_R}/revision/(?P<revision>[^/]+)", _Handler._info),
    ("GET", rf"/api/datasets/{_R}/refs", _Handler._refs),
    ("POST", rf"/api/datasets/{_R}/preupload/main", _Handler._preupload),
    ("POST", rf"/datasets/{_R}\.git/info/lfs/objects/batch", _Handler._batch),
    ("PUT", r"/lfs/(?P<oid>[0-9a-f]{64})", _Handler._upload),
    ("POST", rf"/api/datasets/{_R}/commit/main", _Handler._commit),
    ("POST", rf"/api/datasets/{_R}/tag/(?P<revision>[^/]+)", _Handler._tag),
    ("PUT", rf"/api/datasets/{_R}/settings", _Handler._settings),
    ("GET", rf"/api/datasets/{_R}/tree/(?P<revision>[^/]+)(?:/(?P<folder>.+))?", _Handler._tree),
    ("POST", rf"/api/datasets/{_R}/paths-info/(?P<revision>[^/]+)", _Handler._paths),
    ("GET", rf"/datasets/{_R}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", _Handler._resolve),
]
