"""A model server on the loopback address that answers from a script.

It speaks two protocols, so that an agent's own client is under test and not a stand-in for it: chat completions
(https://platform.openai.com/docs/api-reference/chat) and messages
(https://docs.anthropic.com/en/api/messages), each plain or streamed.

A script is a list of turns (see `Turn`), which requests use up in their order, or it chooses a script by what is
asked: `{"by_model": {NAME: SCRIPT}}`, `{"by_prompt": {MARKER: SCRIPT}}`. The marker is looked for in what the system
and the user say, in the order of the file; an empty one is in every prompt. So rows that ask at the same time each
have turns of their own, and what they are told does not depend on which of them was faster.

As a program: `python chat.py SCRIPT.json [--port-file FILE]` serves until it is ended.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from pathlib import Path
from socket import SHUT_RDWR, socket
from threading import Event, Lock, Thread
from typing import Any, Final, Literal, NamedTuple, Self

STOPS: Final = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
JSON: Final = "application/json"
STREAM: Final = "text/event-stream"

Document = dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """One answer.

    Attributes:
        text: What the model says.
        reasoning: What it thinks before that.
        tool_calls: Each a `name` and `arguments`: a map, or a string that is sent as it is, so that it may be broken.
        usage: Counts of `prompt_tokens` and `completion_tokens`, of these `cached_tokens`, `cache_write_tokens`
            and `reasoning_tokens`; None for a server that does not tell.
        error: A `status` instead of an answer, with `headers` and a `body` if wanted.
        delay_s: How long the server waits before it answers.
        cut_after: How many bytes of the body are sent before the connection is cut.
        model: The model that the answer names; the one asked for by default.
        finish_reason: Why it ended, in the words of chat completions.
        repeat: How many requests are answered so, or "forever".
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: list[Document] = field(default_factory=list)
    usage: Document | None = field(default_factory=lambda: {"prompt_tokens": 10, "completion_tokens": 5})
    error: Document | None = None
    delay_s: float = 0
    cut_after: int | None = None
    model: str = ""
    finish_reason: str = ""
    repeat: int | Literal["forever"] = 1

    @property
    def stop(self) -> str:
        """Why the answer ended."""
        return self.finish_reason or ("tool_calls" if self.tool_calls else "stop")

    def cuts(self, size: int) -> bool:
        """Say whether the connection is cut before so many bytes of the body are sent."""
        return self.cut_after is not None and self.cut_after < size

    def times(self) -> Iterable[Turn]:
        """Return the turn as often as it is to be given."""
        return repeat(self) if self.repeat == "forever" else repeat(self, self.repeat)


WHOLE: Final = Turn()


class Request(NamedTuple):
    """What was asked; the names of headers are in lower case."""

    path: str
    headers: dict[str, str]
    body: Document


class Refusal(Exception):  # noqa: N818  # it is an answer, not a fault
    """The script holds no answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.turn = Turn(error={"status": status, "message": message})


class Script:
    """Turns that are used up, or scripts by model or prompt.

    Args:
        source: As read from JSON.

    Raises:
        TypeError: A turn has a field that no turn has.
    """

    def __init__(self, source: Any) -> None:
        self.by_model = self.by_prompt = None
        match source:
            case {"by_model": dict(scripts)}:
                self.by_model = {name: Script(script) for name, script in scripts.items()}
            case {"by_prompt": dict(scripts)}:
                self.by_prompt = {marker: Script(script) for marker, script in scripts.items()}
            case list():
                self.turns = chain.from_iterable([Turn(**turn).times() for turn in source])
            case _:
                raise TypeError("a script is a list of turns, or has by_model or by_prompt")

    def models(self) -> set[str]:
        """Return every model that is known by name."""
        named = {**(self.by_model or {}), **(self.by_prompt or {})}
        return set(self.by_model or ()).union(*(script.models() for script in named.values()))

    def turn(self, model: str, prompt: str) -> Turn:
        """Take the next turn for a request.

        Raises:
            Refusal: There is none.
        """
        if self.by_model is not None:
            if model not in self.by_model:
                raise Refusal(404, f"The model `{model}` does not exist")
            return self.by_model[model].turn(model, prompt)
        if self.by_prompt is not None:
            for marker, script in self.by_prompt.items():
                if marker in prompt:
                    return script.turn(model, prompt)
            raise Refusal(500, "no script for this prompt")
        for turn in self.turns:
            return turn
        raise Refusal(500, "script is over")


def asked(body: Document) -> str:
    """Return what the system and the user say in a request, without the results of tools."""
    messages = [message for message in body["messages"] if message.get("role") != "tool"]
    contents = [body.get("system"), *(message.get("content") for message in messages)]
    parts = chain.from_iterable(
        [content] if isinstance(content, str) else content or [] for content in contents
    )
    return "\n".join(part if isinstance(part, str) else part.get("text", "") for part in parts)


def halves(text: str) -> Iterator[str]:
    """Cut a text in two, so that a reader has to join it; an empty one is not sent."""
    middle = (len(text) + 1) // 2
    yield from (part for part in (text[:middle], text[middle:]) if part)


def arguments(call: Document) -> str:
    """Return the arguments of a call as they are sent."""
    given = call.get("arguments", {})
    return given if isinstance(given, str) else json.dumps(given)


class Completions:
    """The protocol of chat completions.

    Args:
        turn: What to say.
        number: Tells answers apart.
        body: What was asked.
    """

    def __init__(self, turn: Turn, number: int, body: Document) -> None:
        self.turn, self.number = turn, number
        self.told = turn.usage is not None and (
            not body.get("stream") or (body.get("stream_options") or {}).get("include_usage", False)
        )
        self.head: Document = {
            "id": f"chatcmpl-{number}",
            "created": 1_790_000_000,
            "model": turn.model or body.get("model", ""),
        }

    def error(self) -> Document:
        """Return the body of an error."""
        error = self.turn.error or {}
        return {"error": {"message": error.get("message", "scripted error"), "type": "error", "code": None}}

    def usage(self) -> Document:
        """Return what the answer cost in tokens."""
        given = self.turn.usage or {}
        prompt, completion = given.get("prompt_tokens", 0), given.get("completion_tokens", 0)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": given.get("cached_tokens", 0)},
            "completion_tokens_details": {"reasoning_tokens": given.get("reasoning_tokens", 0)},
        }

    def calls(self) -> list[Document]:
        """Return the calls of tools."""
        return [
            {
                "id": f"call_{self.number}_{index}",
                "type": "function",
                "function": {"name": call["name"], "arguments": arguments(call)},
            }
            for index, call in enumerate(self.turn.tool_calls)
        ]

    def plain(self) -> Document:
        """Return the whole answer."""
        message: Document = {"role": "assistant", "content": self.turn.text or None}
        if self.turn.reasoning:
            message["reasoning_content"] = self.turn.reasoning
        if self.turn.tool_calls:
            message["tool_calls"] = self.calls()
        choice = {"index": 0, "message": message, "finish_reason": self.turn.stop}
        usage = {"usage": self.usage()} if self.told else {}
        return {**self.head, "object": "chat.completion", "choices": [choice], **usage}

    def deltas(self) -> Iterator[Document]:
        """Yield what each chunk adds to the message."""
        yield {"role": "assistant", "content": ""}
        yield from ({"reasoning_content": part} for part in halves(self.turn.reasoning))
        yield from ({"content": part} for part in halves(self.turn.text))
        for index, call in enumerate(self.calls()):
            function = call["function"]
            opening = {**call, "function": {**function, "arguments": ""}}
            yield {"tool_calls": [{"index": index, **opening}]}
            for part in halves(function["arguments"]):
                yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}

    def events(self) -> Iterator[str]:
        """Yield the answer as server-sent events."""
        head = {**self.head, "object": "chat.completion.chunk"}
        choices: list[Document]
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in self.deltas()]
        choices.append({"index": 0, "delta": {}, "finish_reason": self.turn.stop})
        for choice in choices:
            yield f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"
        if self.told:
            yield f"data: {json.dumps({**head, 'choices': [], 'usage': self.usage()})}\n\n"
        yield "data: [DONE]\n\n"


class Messages:
    """The protocol of messages.

    Args:
        turn: What to say.
        number: Tells answers apart.
        body: What was asked.
    """

    def __init__(self, turn: Turn, number: int, body: Document) -> None:
        self.turn = turn
        self.head: Document = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": turn.model or body.get("model", ""),
        }
        self.blocks: list[Document] = []
        if turn.reasoning:
            self.blocks.append({"type": "thinking", "thinking": turn.reasoning, "signature": "signed"})
        if turn.text:
            self.blocks.append({"type": "text", "text": turn.text})
        for index, call in enumerate(turn.tool_calls):
            identity = {"id": f"toolu_{number}_{index}", "name": call["name"]}
            self.blocks.append({"type": "tool_use", **identity, "input": call.get("arguments", {})})

    def error(self) -> Document:
        """Return the body of an error."""
        error = self.turn.error or {}
        message = error.get("message", "scripted error")
        return {"type": "error", "error": {"type": "api_error", "message": message}}

    def usage(self) -> Document:
        """Return what the answer cost in tokens: here the cached ones are not among the others."""
        given = self.turn.usage or {}
        read, written = given.get("cached_tokens", 0), given.get("cache_write_tokens", 0)
        return {
            "input_tokens": given.get("prompt_tokens", 0) - read - written,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": given.get("completion_tokens", 0),
        }

    def plain(self) -> Document:
        """Return the whole answer."""
        stop = {"stop_reason": STOPS.get(self.turn.stop, self.turn.stop), "stop_sequence": None}
        usage: Document = {} if self.turn.usage is None else {"usage": self.usage()}
        return {**self.head, "content": self.blocks, **stop, **usage}

    def deltas(self, block: Document) -> Iterator[Document]:
        """Yield what each event adds to a block."""
        match block["type"]:
            case "thinking":
                yield from (
                    {"type": "thinking_delta", "thinking": part} for part in halves(block["thinking"])
                )
                yield {"type": "signature_delta", "signature": block["signature"]}
            case "text":
                yield from ({"type": "text_delta", "text": part} for part in halves(block["text"]))
            case _:
                sent = arguments({"arguments": block["input"]})
                yield from ({"type": "input_json_delta", "partial_json": part} for part in halves(sent))

    def documents(self) -> Iterator[Document]:
        """Yield what the events hold."""
        empty: Document = {
            "thinking": {"thinking": "", "signature": ""},
            "text": {"text": ""},
            "tool_use": {"input": {}},
        }
        whole = self.plain()
        usage = whole.pop("usage", None)
        told: Document = {} if usage is None else {"usage": usage}
        start = {**whole, "content": [], "stop_reason": None, **told}
        yield {"type": "message_start", "message": start}
        for index, block in enumerate(self.blocks):
            yield {
                "type": "content_block_start",
                "index": index,
                "content_block": block | empty[block["type"]],
            }
            for delta in self.deltas(block):
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        stop: Document = {name: whole[name] for name in ("stop_reason", "stop_sequence")}
        yield {"type": "message_delta", "delta": stop, **told}
        yield {"type": "message_stop"}

    def events(self) -> Iterator[str]:
        """Yield the answer as server-sent events."""
        for document in self.documents():
            yield f"event: {document['type']}\ndata: {json.dumps(document)}\n\n"


PROTOCOLS: Final[dict[str, type[Completions | Messages]]] = {
    "/v1/chat/completions": Completions,
    "/v1/messages": Messages,
}


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener

    def do_GET(self) -> None:
        """Name the models that the script knows."""
        if self.path != "/v1/models":
            return self.send(404, {"error": {"message": f"no {self.path}"}})
        names = sorted(self.server.script.models()) or ["scripted"]
        models = [
            {"id": name, "object": "model", "created": 1_790_000_000, "owned_by": "script"} for name in names
        ]
        return self.send(200, {"object": "list", "data": models})

    def do_POST(self) -> None:
        """Give the next turn."""
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        protocol = PROTOCOLS.get(self.path.partition("?")[0])
        if protocol is None:
            return self.send(404, {"error": {"message": f"no {self.path}"}})
        try:
            body = json.loads(raw)
            prompt = asked(body)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return self.send(400, {"error": {"message": f"not a request: {error!r}"}})
        headers = {name.lower(): value for name, value in self.headers.items()}
        turn, number = self.server.take(Request(self.path, headers, body), prompt)
        self.server.ended.wait(turn.delay_s)
        answer = protocol(turn, number, body)
        if turn.error:
            document = turn.error.get("body", answer.error())
            return self.send(turn.error["status"], document, turn, turn.error.get("headers", {}))
        if body.get("stream"):
            return self.stream(answer.events(), turn)
        return self.send(200, answer.plain(), turn)

    def send(self, status: int, document: Any, turn: Turn = WHOLE, headers: Document | None = None) -> None:
        """Send an answer that is known as a whole."""
        data = (document if isinstance(document, str) else json.dumps(document)).encode()
        self.open(status, {"Content-Type": JSON, "Content-Length": str(len(data)), **(headers or {})})
        self.wfile.write(data[: turn.cut_after])
        self.close_connection = self.close_connection or turn.cuts(len(data))

    def stream(self, events: Iterable[str], turn: Turn) -> None:
        """Send an answer in chunks, one for each event."""
        self.open(200, {"Content-Type": STREAM, "Cache-Control": "no-cache", "Transfer-Encoding": "chunked"})
        sent = 0
        for event in events:
            data = event.encode()
            if turn.cuts(sent + len(data)):
                data = data[: turn.cut_after - sent] if turn.cut_after else b""
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) if data else b"")
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            sent += len(data)
        self.wfile.write(b"0\r\n\r\n")

    def open(self, status: int, headers: Document) -> None:
        """Send the status and the headers."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is the library's
        """Say nothing: the requests are kept."""


class Listener(ThreadingHTTPServer):
    """Hands out turns to connections, each of which a thread serves.

    Args:
        script: What to say.
        port: Where to listen on the loopback address; 0 is a free port.
        keep: Whether requests are kept; each repeats all that was said before, so that many take much memory.
    """

    request_queue_size = 128

    def __init__(self, script: Script, port: int = 0, *, keep: bool = True) -> None:
        self.script, self.keep, self.requests, self.asked = script, keep, list[Request](), 0
        self.ended, self.lock, self.connections = Event(), Lock(), set[socket]()
        super().__init__(("127.0.0.1", port), Handler)

    def take(self, request: Request, prompt: str) -> tuple[Turn, int]:
        """Keep a request, and return the turn that answers it and its number, from 1."""
        with self.lock:
            self.asked += 1
            if self.keep:
                self.requests.append(request)
            try:
                turn = self.script.turn(request.body.get("model", ""), prompt)
            except Refusal as refusal:
                turn = refusal.turn
            return turn, self.asked

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection, so that it can be ended."""
        with self.lock:
            self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection and end it."""
        with self.lock:
            self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing when a client has gone away; anything else is a fault of the server."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def end(self) -> None:
        """Stop listening, end every connection and wait for the threads."""
        self.ended.set()
        self.shutdown()
        with self.lock:
            for connection in self.connections:
                with suppress(OSError):
                    connection.shutdown(SHUT_RDWR)
        self.server_close()


class ChatServer:
    """The server in this process, for the length of a `with`.

    Args:
        script: A list of turns, or scripts by model or prompt.

    Attributes:
        url: Where it is, up to and with `/v1`.
        requests: What was asked, in the order in which it came.
    """

    def __init__(self, script: Any) -> None:
        self.listener = Listener(Script(script))
        self.requests = self.listener.requests
        self.url = f"http://127.0.0.1:{self.listener.server_port}/v1"

    def __enter__(self) -> Self:
        self.thread = Thread(target=self.listener.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.end()
        self.thread.join()


def main() -> None:
    """Serve a script from a file until the process is ended."""
    parser = argparse.ArgumentParser(description="Answer model requests from a script.")
    parser.add_argument("script", type=Path, metavar="SCRIPT.json")
    parser.add_argument("--port", type=int, default=0, help="0 is a free port")
    parser.add_argument("--port-file", type=Path, metavar="FILE", help="where to write the port")
    options = parser.parse_args()
    listener = Listener(Script(json.loads(options.script.read_text())), options.port, keep=False)
    if options.port_file:
        unfinished = options.port_file.with_suffix(".part")
        unfinished.write_text(str(listener.server_port))
        unfinished.replace(options.port_file)
    print(f"http://127.0.0.1:{listener.server_port}/v1", flush=True)
    with suppress(KeyboardInterrupt):
        listener.serve_forever()


if __name__ == "__main__":
    main()
