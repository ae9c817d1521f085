"""One request to a model, through the library: tried again when that can help, counted whatever happens."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
)
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings

from spl.agent.events import Events, Failure
from spl.agent.ledger import Ledger, Step
from spl.agent.settings import Provider, Route, Settings, route

ATTEMPTS: Final = 5
MAX_WAIT_S: Final = 60.0
_FIRST_WAIT_S: Final = 0.5
_IDLE_S: Final = 300.0
_NO_KEY: Final = "none"
_SHORT: Final = 8
_PASSING: Final = (ModelRateLimitError, ModelUnavailableError, ModelServerError, ModelConnectionError)


class Connections:
    """The models of a run, each connected once.

    Args:
        settings: Where providers are.
        environment: The variables, of which the providers' keys are read.
        events: Learns the keys, so that none is told.
    """

    def __init__(self, settings: Settings, environment: Mapping[str, str], events: Events) -> None:
        self._settings, self._environment, self._events = settings, environment, events
        self._models: dict[Route, Model] = {}
        self._clients: dict[str, Any] = {}

    def model(self, text: str) -> tuple[Route, Model]:
        """Return a model by the name that a definition gives it.

        Raises:
            InputError: No provider serves it.
            Failure: Its provider's key is not there.
        """
        found = route(self._settings, text)
        if found not in self._models:
            self._models[found] = self._connect(found, self._settings.providers[found.provider])
        return found, self._models[found]

    async def close(self) -> None:
        """End the connections."""
        for client in self._clients.values():
            await client.close()

    def _connect(self, to: Route, provider: Provider) -> Model:
        key = self._key(to.provider, provider)
        if provider.kind == "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - few runs need both
            from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

            messages = AnthropicProvider(api_key=key, base_url=provider.base_url)
            self._clients[to.provider] = messages.client
            return AnthropicModel(to.model, provider=messages)
        from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - as above
        from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415

        completions: OpenAIProvider | OpenAICompatibleProvider
        if to.provider == "openai":
            completions = OpenAIProvider(api_key=key, base_url=provider.base_url)
        else:
            completions = OpenAICompatibleProvider(to.provider, api_key=key, base_url=provider.base_url)
        self._clients[to.provider] = completions.client
        return OpenAIChatModel(to.model, provider=completions)

    def _key(self, name: str, provider: Provider) -> str:
        if provider.api_key_env is None:
            return _NO_KEY
        key = self._environment.get(provider.api_key_env, "").strip()
        if not key:
            raise Failure(
                "no_key", f"the provider {name} needs a key: set the variable {provider.api_key_env}"
            )
        if len(key) >= _SHORT:
            self._events.secrets.append(key)
        return key


class Requests:
    """Makes the requests of one stage.

    Args:
        to: The model, as it is told.
        model: The model, as the library knows it.
        ledger: Counts.
        events: Learns of tries.
        step: Where in the pipeline this is.
    """

    def __init__(self, to: tuple[Route, Model], ledger: Ledger, events: Events, step: Step) -> None:
        self.route, self._model = to
        self._ledger, self._events, self._step = ledger, events, step

    async def ask(
        self, messages: list[ModelMessage], parameters: ModelRequestParameters, settings: ModelSettings
    ) -> ModelResponse:
        """Return the model's whole answer.

        A rate limit, a fault of the server and a lost connection are tried again, at most five times in all, after the
        time that the server names, or else twice as long each time; every wait is told.

        Raises:
            Failure: The model cannot be asked, or a limit is spent.
        """
        settings = {**settings, "max_retries": 0, "timeout": _IDLE_S}
        wait_s = _FIRST_WAIT_S
        for attempt in range(1, ATTEMPTS + 1):
            self._ledger.check()
            try:
                async with asyncio.timeout(self._ledger.remaining_s()):
                    return await self._once(messages, parameters, settings)
            except TimeoutError as error:
                raise self._ledger.out_of_time() from error
            except _PASSING as error:
                asked = error.retry_after
                if attempt == ATTEMPTS or (asked is not None and asked > MAX_WAIT_S):
                    raise self._failure(error, attempt) from error
                pause_s = asked if asked is not None else wait_s * random.uniform(1, 1.25)  # noqa: S311 - spread
                wait_s *= 2
                self._events.emit(
                    "warning",
                    code="retry",
                    message=f"{self._told(error)}; trying again in {pause_s:.1f} s ({attempt} of {ATTEMPTS})",
                )
                await self._pause(pause_s)
            except ModelAPIError as error:
                raise self._failure(error, attempt) from error
        raise AssertionError  # the last attempt returns or raises

    async def _pause(self, pause_s: float) -> None:
        left = self._ledger.remaining_s()
        if left is not None and left < pause_s:
            raise self._ledger.out_of_time()
        await asyncio.sleep(pause_s)

    async def _once(
        self, messages: list[ModelMessage], parameters: ModelRequestParameters, settings: ModelSettings
    ) -> ModelResponse:
        stream: StreamedResponse | None = None
        try:
            async with model_request_stream(
                self._model, messages, model_settings=settings, model_request_parameters=parameters
            ) as stream:
                async for _ in stream:
                    pass
                response = stream.get()
        except ModelHTTPError as error:
            if error.in_stream:
                self._unknown()
            raise
        except ModelConnectionError as error:
            if stream is not None or error.phase not in ("connect", "pool", None):
                self._unknown()
            raise
        except asyncio.CancelledError:
            self._unknown()  # it was sent, and what it used is not known
            raise
        except ModelAPIError:
            raise
        except Exception as error:  # the library does not foresee every answer that a server can give
            self._unknown()
            raise Failure(
                "bad_answer", f"{self.route.provider} gave an answer that cannot be read: {error}"
            ) from error
        # The library gives 0 for what a server did not tell; only what was told stands in the instance.
        told = {name: value for name, value in vars(response.usage).items() if type(value) is int}
        if "input_tokens" not in told and "output_tokens" not in told:
            told = {}
        self._ledger.add(self._step, self.route, told, response.model_name)
        return response

    def _unknown(self) -> None:
        self._ledger.add(self._step, self.route, {}, None)

    def _failure(self, error: ModelAPIError, attempt: int) -> Failure:
        code = {401: "no_access", 403: "no_access", 404: "unknown_model", 429: "rate_limit"}.get(
            getattr(error, "status_code", 0), "model_request"
        )
        tries = f", {attempt} times" if attempt > 1 else ""
        return Failure(code, f"{self._told(error)}{tries}")

    def _told(self, error: ModelAPIError) -> str:
        """Return what went wrong in one sentence: who said what, as far as it is known."""
        named = f"{self.route.provider}, asked for {self.route.model}"
        if isinstance(error, ModelHTTPError):
            body = error.body
            said = cast("dict[str, Any]", body).get("message") if isinstance(body, dict) else body
            if isinstance(body, dict) and isinstance(body.get("error"), dict):
                said = body["error"].get("message", said)
            return f"{named}, answered {error.status_code}" + (f": {said}" if said else "")
        cause = error.__cause__
        while cause is not None and cause.__cause__ is not None:
            cause = cause.__cause__
        return f"{named}: {error.message}" + (f" ({cause})" if cause is not None and str(cause) else "")
