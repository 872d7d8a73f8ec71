"""The application: routes, and how each kind of failure is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware

from compdiffuser.compose import BLENDINGS, ORDERS, STEPS
from compdiffuser.domains import Space
from compdiffuser.planning.search import SCORES
from compdiffuser.types import UserError
from compdiffuser.web.assets import asset_routes
from compdiffuser.web.drive_route import add_drive
from compdiffuser.web.guard import Guard
from compdiffuser.web.library import Library, NotReady, Unknown
from compdiffuser.web.messages import Health, ModelsReply, PlanQuery, PlanReply, PlanRequest, Problem
from compdiffuser.web.models import SceneReply
from compdiffuser.web.scheduler import Closed, Full, Job, default_wave, most_rows
from compdiffuser.web.service import Service, sentence
from compdiffuser.web.settings import Settings
from compdiffuser.web.streaming import HEADERS, Film, Mailbox, event

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The request is not understood."},
    401: {"model": Problem, "description": "The token is missing or wrong."},
    403: {"model": Problem, "description": "A page of another site asks."},
    404: {"model": Problem, "description": "There is no model of that name."},
    408: {"model": Problem, "description": "The body did not arrive in time."},
    413: {"model": Problem, "description": "The body is too large."},
    421: {"model": Problem, "description": "The server does not answer for this host."},
    422: {"model": Problem, "description": "Something given cannot be planned; the sentence names it."},
    429: {"model": Problem, "description": "Others are planned for; `Retry-After` says when to come back."},
    500: {"model": Problem, "description": "The server failed; its log says why."},
    503: {"model": Problem, "description": "The server is stopping, has too many connections, or lacks the model."},
    504: {"model": Problem, "description": "No plan was made in time."},
}
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {}}, "description": "Server-sent events."}
}


class Elsewhere(CORSMiddleware):
    """Pages of other sites; one that may not come is told so in JSON."""

    def preflight_response(self, request_headers: Headers) -> Response:
        reply = super().preflight_response(request_headers)
        if reply.status_code < 400:
            return reply
        detail = "pages of other sites may not use this server in this way"
        kept = {name: value for name, value in reply.headers.items() if not name.startswith("content-")}
        return JSONResponse({"detail": detail}, reply.status_code, kept)


class Left(Exception):
    """The client went away."""


def create_app(settings: Settings, library: Library) -> FastAPI:
    service = Service(settings, library)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        service.scheduler.start()
        yield
        await run_in_threadpool(service.scheduler.close)
        await run_in_threadpool(service.stages.close)

    app = FastAPI(
        title="CompDiffuser", version=version("compdiffuser"), lifespan=life, docs_url=None, redoc_url=None,
        description="Plans long trajectories from short ones. Every refusal is one sentence in `detail`.",
    )  # fmt: skip
    app.state.service = service
    app.add_middleware(Guard, settings=settings, metrics=service.metrics)
    if settings.origins:
        app.add_middleware(
            Elsewhere, allow_origins=list(settings.origins), allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )  # fmt: skip
    _tell_failures(app)
    app.routes.extend(asset_routes())
    _add_plans(app, service)
    _add_offer(app, service)
    add_drive(app, service, {**REFUSALS, **STREAM})
    return app


def _add_plans(app: FastAPI, service: Service) -> None:
    @app.post("/v1/plan", response_model=PlanReply, responses=REFUSALS)
    async def plan(body: PlanRequest, request: Request) -> Response:
        """Plan from a start to a goal. Requests that arrive together are planned in one batch."""
        body = await run_in_threadpool(service.completed, body)
        job = await run_in_threadpool(service.job, body)
        service.submit(job)
        complete = await _ended(job, request)
        reply = await run_in_threadpool(service.reply, body, job, complete)
        return Response(reply.model_dump_json(), media_type="application/json")

    @app.get("/v1/plan/stream", response_class=StreamingResponse, responses={**REFUSALS, **STREAM})
    async def stream(query: Annotated[PlanQuery, Query()]) -> StreamingResponse:
        """Plan, and watch: events `accepted`, `wave`, `frame`, `scored`, and at last `plan` or `error`."""
        body = await run_in_threadpool(service.completed, query.request())
        body.include_candidates = True
        job = await run_in_threadpool(service.job, body)
        columns = shown_columns(query.columns, job.planner.space)
        mailbox = Mailbox()
        film = Film(job.planner, job.search, mailbox, columns)
        job.on_round, job.on_wave = film.on_round, film.on_wave
        service.submit(job)
        job.ended.add_done_callback(lambda _: mailbox.post("ended", None))
        return StreamingResponse(_events(service, body, job, mailbox, columns), 200, HEADERS, "text/event-stream")


def shown_columns(given: str | None, space: Space) -> list[int]:
    """Columns of a planned state that a client wants to see. Raises UserError for one that there is not."""
    if given is None:
        return space.columns
    columns = [int(part) for part in given.split(",")]
    if strange := [column for column in columns if column >= len(space.dims)]:
        raise UserError(f"a planned state has the columns 0 to {len(space.dims) - 1} here, there is no {strange[0]}")
    return columns


def _add_offer(app: FastAPI, service: Service) -> None:
    """What the server has, and how it is."""
    library, allowed = service.library, service.settings.limits

    @app.get("/v1/models", response_model=ModelsReply, responses={401: REFUSALS[401]})
    async def models() -> ModelsReply:
        """The planners of this server, their mazes, what a request may ask for, and the choices that a sampler has."""
        described = []
        for name in library.names:
            with suppress(NotReady):
                described.append(await run_in_threadpool(library.describe, name))
        limits = {name: getattr(allowed, name) for name in ("chunks", "candidates", "steps", "repeats")}
        device = library.get(library.default).device.type
        return ModelsReply(
            default=library.default, wave=default_wave(device), rows=most_rows(device), limits=limits,
            orders=list(ORDERS), rules=list(STEPS), scores=list(SCORES), blendings=list(BLENDINGS), models=described,
        )  # fmt: skip

    @app.get("/v1/scene", response_model=SceneReply, responses={code: REFUSALS[code] for code in (401, 404, 422, 503)})
    def scene(model: Annotated[str, Query(max_length=200)]) -> SceneReply:
        """What moves in the world of a planner, for drawing it in three dimensions."""
        return service.stages.scene(library.get(model).preset.domain)

    @app.get("/healthz", response_model=Health, responses={503: {"model": Health, "description": "Nothing is ready."}})
    async def healthz() -> Response:
        """Whether the server is up, how busy, and what of it is not ready."""
        health = service.health()
        return JSONResponse(health.model_dump(), 503 if health.status == "down" else 200)

    @app.get("/metrics", response_class=PlainTextResponse, responses={401: REFUSALS[401]})
    async def metrics() -> PlainTextResponse:
        """Counters in Prometheus' text format."""
        text = service.metrics.text(*service.scheduler.load)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


async def _ended(job: Job, request: Request) -> bool:
    """Wait for a job; if the client leaves first, the job is cancelled."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    answer = asyncio.wrap_future(job.ended)
    left = asyncio.create_task(gone())
    both: tuple[asyncio.Future[Any], ...] = (answer, left)
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise Left
        return answer.result()
    finally:
        answer.cancel()
        left.cancel()


async def _events(
    service: Service, body: PlanRequest, job: Job, mailbox: Mailbox, columns: list[int]
) -> AsyncIterator[str]:  # fmt: skip
    try:
        yield event("accepted", {"under_way": len(service.scheduler.jobs)})
        async for text in mailbox.read():
            yield text
        try:
            reply = await run_in_threadpool(service.reply, body, job, job.ended.result(), columns)
            yield event("plan", reply.model_dump_json())
        except Exception as error:
            yield event("error", {"detail": sentence(error)})
    finally:
        job.ended.cancel()


def _tell_failures(app: FastAPI) -> None:
    def tell(kind: type[Exception], status: int, headers: Callable[[Any], dict[str, str]] = lambda error: {}) -> None:
        async def handler(request: Request, error: Exception) -> JSONResponse:
            return JSONResponse({"detail": sentence(error)}, status, headers(error))

        app.add_exception_handler(kind, handler)

    tell(UserError, 422)
    tell(Unknown, 404)
    tell(Full, 429, lambda error: {"retry-after": str(error.retry_after)})
    tell(Closed, 503)
    tell(NotReady, 503)
    tell(TimeoutError, 504)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"detail": _mistake(error.errors()[0])}, 422)

    @app.exception_handler(Left)
    async def left(request: Request, error: Left) -> Response:
        return Response(status_code=499)


def _mistake(first: dict[str, Any]) -> str:
    """The first thing that is wrong with a request, in one sentence."""
    kind, given = first["type"], str(first["input"])[:60]
    if kind == "json_invalid":
        return f"the body is not JSON: {first['ctx']['error'].lower()}"
    if kind == "model_attributes_type":
        return "the body must be a JSON object, sent with the content type application/json"
    place = [str(part) for part in first["loc"][1:]] or ["the body"]
    where = place[0]
    if where == "chunks":
        return f"chunks: input should be 'auto' or a number of at least 1, not {given!r}"
    if kind == "string_pattern_mismatch":
        return f"{where}: input should be numbers separated by commas, such as 0.5,-2, not {given!r}"
    return f"{'.'.join(place)}: {first['msg'].lower()}" + ("" if kind == "missing" else f", not {given!r}")
