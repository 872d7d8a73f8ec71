"""A hub of our own: the part of the Hugging Face hub's protocol that pushing and fetching a planner takes.

It creates repositories, takes large files by LFS and small ones inside a commit, and serves both. Repositories are kept
in memory; `Hub.repositories` holds the files of each one's last commit.
"""

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

TOKEN = "hf_of_the_test"


class Hub:
    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.large: dict[str, bytes] = {}
        self.asked: list[str] = []
        """Method and path of every request."""
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"hub": self}))
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> "Hub":
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def commit(self, repository: str) -> str:
        files = sorted(self.repositories[repository].items())
        return hashlib.sha1(
            repr([(name, hashlib.sha256(data).hexdigest()) for name, data in files]).encode()
        ).hexdigest()


class Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._route()

    do_HEAD = do_POST = do_PUT = do_GET

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _route(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append(f"{self.command} {path}")
        self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
        for pattern, method in ROUTES.items():
            if found := re.fullmatch(pattern, path):
                writes = self.command in ("POST", "PUT") and "validate-yaml" not in path and "storage" not in path
                if writes and self.headers.get("authorization") != f"Bearer {TOKEN}":
                    return self._answer(401, {"error": "Invalid credentials"})
                repository = found.groupdict().get("id")
                if repository is not None and repository not in self.hub.repositories:
                    return self._answer(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
                return method(self, **found.groupdict())
        return self._answer(404, {"error": f"no {path} here"})

    def _answer(self, status: int, content: object, headers: dict[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _create(self) -> None:
        asked = json.loads(self.body)
        name = f"{asked['organization']}/{asked['name']}"
        if name.startswith("forbidden/"):
            return self._answer(403, {"error": "You have no rights in 'forbidden'"})
        status = 409 if name in self.hub.repositories else 200
        self.hub.repositories.setdefault(name, {})
        return self._answer(status, {"url": f"{self.hub.address}/{name}", "id": name})

    def _validate(self) -> None:
        front = json.loads(self.body)["content"].split("---")[1]
        errors = [] if "license:" in front else [{"message": "license is missing"}]
        self._answer(200 if not errors else 400, {"errors": errors, "warnings": []})

    def _preupload(self, id: str) -> None:
        files = [file["path"] for file in json.loads(self.body)["files"]]
        modes = {path: "lfs" if path.endswith(".safetensors") else "regular" for path in files}
        self._answer(
            200, {"files": [{"path": path, "uploadMode": mode, "shouldIgnore": False} for path, mode in modes.items()]}
        )

    def _batch(self, id: str) -> None:
        objects = [
            {**each, "actions": {"upload": {"href": f"{self.hub.address}/storage/{each['oid']}"}}}
            for each in json.loads(self.body)["objects"]
        ]
        self._answer(200, {"transfer": "basic", "objects": objects})

    def _store(self, oid: str) -> None:
        assert hashlib.sha256(self.body).hexdigest() == oid
        self.hub.large[oid] = self.body
        self._answer(200, {})

    def _commit(self, id: str) -> None:
        files = dict(self.hub.repositories[id])
        for line in self.body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                files[value["path"]] = self.hub.large[value["oid"]]
            elif entry["key"] == "deletedFile":
                files.pop(value["path"], None)
        self.hub.repositories[id] = files
        oid = self.hub.commit(id)
        self._answer(200, {"commitUrl": f"{self.hub.address}/{id}/commit/{oid}", "commitOid": oid, "success": True})

    def _info(self, id: str) -> None:
        siblings = [{"rfilename": name} for name in self.hub.repositories[id]]
        self._answer(200, {"id": id, "sha": self.hub.commit(id), "siblings": siblings, "private": False})

    def _tree(self, id: str) -> None:
        entries = [
            {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
            for name, data in self.hub.repositories[id].items()
        ]
        self._answer(200, entries)

    def _resolve(self, id: str, file: str) -> None:
        head = {"X-Repo-Commit": self.hub.commit(id)}
        if file not in self.hub.repositories[id]:
            return self._answer(404, {"error": "Entry not found"}, {**head, "X-Error-Code": "EntryNotFound"})
        data = self.hub.repositories[id][file]
        return self._answer(200, data, {**head, "ETag": f'"{hashlib.sha1(data).hexdigest()}"'})


ID = r"(?P<id>[\w.-]+/[\w.-]+?)"
ROUTES = {
    "/api/repos/create": Handler._create,
    "/api/validate-yaml": Handler._validate,
    f"/api/models/{ID}/preupload/main": Handler._preupload,
    f"/{ID}\\.git/info/lfs/objects/batch": Handler._batch,
    r"/storage/(?P<oid>\w+)": Handler._store,
    f"/api/models/{ID}/commit/main": Handler._commit,
    f"/api/models/{ID}(?:/revision/[^/]+)?": Handler._info,
    f"/api/models/{ID}/tree/[^/]+": Handler._tree,
    f"/{ID}/resolve/[^/]+/(?P<file>.+)": Handler._resolve,
}
