"""Who may ask: tokens, hosts, origins; what is not told; how many at a time."""

from __future__ import annotations

import asyncio
import threading

import httpx
import pytest

import spaseq
from spaseq.serve import Settings, create_app
from tests.serve.running import PATIENCE, limited, running
from tests.streams import query


def test_a_token_is_needed_where_others_can_reach() -> None:
    with pytest.raises(spaseq.EngineError, match=r"0\.0\.0\.0 other machines can reach"):
        Settings(host="0.0.0.0")
    assert "secret" not in repr(Settings(host="0.0.0.0", token="secret"))


def test_the_token_is_asked_for() -> None:
    with running(Settings(port=0, token="secret")) as server:
        for headers in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "Basic secret"},
            {"Authorization": "Bearer sécret".encode()},
        ):
            answer = server.http.get("/queries", headers=headers)
            assert (answer.status_code, answer.json()["error"]["kind"]) == (401, "auth")
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert server.http.get("/queries", params={"token": "secret"}).status_code == 401
        assert server.http.get("/queries", headers={"Authorization": "Bearer secret"}).status_code == 200
        assert server.http.get("/healthz").status_code == 200
        assert server.http.get("/").status_code == 200
        assert server.http.get("/metrics").status_code == 401


def test_pages_of_other_sites_cannot_use_the_server() -> None:
    with running() as server:
        for headers in (
            {"Host": "evil.example"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
        ):
            answer = server.http.post("/queries", content=query("A"), headers=headers)
            assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "auth")
        own = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
        assert server.http.post("/queries", content=query("A"), headers=own).status_code == 201
        assert server.http.get("/queries", headers={"Host": "localhost:1"}).status_code == 200
        assert "Access-Control-Allow-Origin" not in server.http.get("/queries", headers=own).headers


def test_headers_of_every_answer() -> None:
    with running() as server:
        for path in ("/", "/queries", "/nothing", "/openapi.json"):
            headers = server.http.get(path).headers
            assert headers["Content-Security-Policy"].startswith("default-src 'self'")
            assert headers["X-Content-Type-Options"] == "nosniff"
        assert server.http.get("/docs").status_code == 404
        assert server.http.get("/page/../app.py").status_code == 404
        assert server.http.get("/page/%2e%2e/app.py").status_code == 404


def test_the_description_names_all_routes() -> None:
    with running() as server:
        told = server.http.get("/openapi.json").json()
    for path in (
        "/queries",
        "/queries/{key}/matches",
        "/streams/{iri}",
        "/letters",
        "/graphs",
        "/sparql",
        "/paths",
    ):
        assert path in told["paths"]


def test_a_failure_tells_no_more_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as server:

        def fail(_: int) -> None:
            raise RuntimeError("/home/someone/secret")

        monkeypatch.setattr(server.app.service.letters, "newest", fail)
        answer = server.http.get("/letters")
        assert (answer.status_code, answer.json()["error"]["kind"]) == (500, "internal")
        assert "secret" not in answer.text


@pytest.mark.slow
def test_requests_at_a_time_and_their_time_are_limited() -> None:
    began, gate = threading.Event(), threading.Event()

    def block(_: spaseq.Engine) -> None:
        began.set()
        gate.wait(PATIENCE)

    with running(limited(connections=1, seconds=1)) as server:
        engine = server.app.service.engine  # whose thread is held up from beside
        blocking = threading.Thread(target=lambda: asyncio.run(engine.call(block)))
        blocking.start()
        try:
            assert began.wait(PATIENCE)
            answer = server.http.get("/queries")
            assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "limit")
            assert "seconds" in answer.json()["error"]["message"]
        finally:
            gate.set()
            blocking.join(PATIENCE)
        key = server.register(query("A"))
        with server.http.stream("GET", f"/queries/{key}/matches"):
            answer = server.http.get("/queries")
            assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "limit")


def test_the_application_runs_under_any_server() -> None:
    """Its lifespan begins and ends the engine."""
    app = create_app(spaseq.Engine(), Settings())

    async def main() -> list[int]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            made = await http.post("/queries", content=query("A"))
            return [made.status_code, (await http.get("/healthz")).status_code]

    async def whole() -> list[int]:
        events: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        told: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        life = asyncio.ensure_future(app({"type": "lifespan", "asgi": {}}, events.get, told.put))  # type: ignore[arg-type]
        await events.put({"type": "lifespan.startup"})
        assert (await told.get())["type"] == "lifespan.startup.complete"
        found = await main()
        await events.put({"type": "lifespan.shutdown"})
        assert (await told.get())["type"] == "lifespan.shutdown.complete"
        await life
        return found

    assert asyncio.run(asyncio.wait_for(whole(), PATIENCE)) == [201, 200]
