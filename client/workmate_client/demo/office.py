"""The office's side of the demo: people with access tokens, calling the HTTP API.

Nothing but the published API and the standard library, as a stranger's program would.
"""

import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from typing import Any


class OfficeError(Exception):
    """The server answered with a problem; `code` and `status` are the problem's."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(f"{status} {problem.get('code')}: {problem.get('detail')}")
        self.status = status
        self.code = str(problem.get("code"))
        self.problem = dict(problem)


class Desk:
    """One person or program of the office, by its access token."""

    def __init__(self, url: str, token: str, name: str) -> None:
        self._url = url
        self._token = token
        self.name = name

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        version: int | None = None,
    ) -> Any:
        """Send one request and return its decoded answer; raises OfficeError for a problem."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        if method != "GET":
            headers["Idempotency-Key"] = key or uuid.uuid4().hex  # noqa: TID251 - a demo's key
        if version is not None:
            headers["If-Match"] = f'"{version}"'
        request = urllib.request.Request(  # noqa: S310 - loopback only
            self._url + path, data=data, headers=headers, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                content = answer.read()
        except urllib.error.HTTPError as error:
            raise OfficeError(error.code, json.loads(error.read() or b"{}")) from error
        return json.loads(content) if content else None

    def pages(self, path: str, field: str = "items") -> Iterator[Any]:
        """Yield the items of a list, page after page."""
        joiner = "&" if "?" in path else "?"
        cursor = None
        while True:
            more = f"{joiner}cursor={cursor}" if cursor else ""
            page = self.call("GET", path + more)
            yield from page[field]
            cursor = page.get("next")
            if not cursor:
                return

    def task(self, task_id: str) -> dict[str, Any]:
        """Return one task."""
        answer: dict[str, Any] = self.call("GET", f"/v1/tasks/{task_id}")
        return answer

    def act(self, task_id: str, command: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Issue a command on a task at its present version, e.g. `reject-proof`."""
        version = self.task(task_id)["version"]
        answer: dict[str, Any] = self.call(
            "POST", f"/v1/tasks/{task_id}/{command}", body, version=version
        )
        return answer
