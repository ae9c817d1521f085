"""The scripted model server, by hand and through the clients that agents use."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from servers import chat
from servers.chat import ChatServer

ASK = {"model": "small", "messages": [{"role": "user", "content": "Write a note"}]}
CALL = {"name": "read", "arguments": {"path": "a.txt"}}
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "cached_tokens": 60,
    "cache_write_tokens": 10,
    "reasoning_tokens": 5,
}


class Client:
    """One connection that is kept."""

    def __init__(self, url: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)

    def ask(self, body: Any, path: str = "/v1/chat/completions") -> http.client.HTTPResponse:
        self.connection.request("POST", path, json.dumps(body), {"X-Mark": "here"})
        return self.connection.getresponse()

    def text(self, body: Any = ASK) -> Any:
        return json.load(self.ask(body))["choices"][0]["message"]["content"]


@pytest.fixture
def clients() -> Iterator[Any]:
    made: list[Client] = []

    def client(server: ChatServer) -> Client:
        made.append(Client(server.url))
        return made[-1]

    yield client
    for each in made:
        each.connection.close()


def test_turns_are_given_in_their_order_over_one_connection(clients: Any) -> None:
    with ChatServer([{"text": "one"}, {"text": "two", "repeat": 2}]) as server:
        client = clients(server)
        assert [client.text() for _ in range(3)] == ["one", "two", "two"]
        over = client.ask(ASK)
        assert over.status == 500
        assert json.load(over)["error"]["message"] == "script is over"
    assert [request.body for request in server.requests] == [ASK] * 4
    assert server.requests[0].headers["x-mark"] == "here"


def test_a_turn_may_be_given_forever(clients: Any) -> None:
    with ChatServer([{"text": "again", "repeat": "forever"}]) as server:
        client = clients(server)
        assert {client.text() for _ in range(20)} == {"again"}


def test_a_plain_answer_holds_calls_and_every_class_of_tokens(clients: Any) -> None:
    turn = {"reasoning": "hm", "tool_calls": [CALL, {"name": "x", "arguments": "{bro"}], "usage": USAGE}
    with ChatServer([turn, {"text": "t", "usage": None, "model": "small-2"}]) as server:
        client = clients(server)
        first, second = json.load(client.ask(ASK)), json.load(client.ask(ASK))
    message = first["choices"][0]["message"]
    assert message["reasoning_content"] == "hm"
    assert [call["function"]["arguments"] for call in message["tool_calls"]] == ['{"path": "a.txt"}', "{bro"]
    assert first["choices"][0]["finish_reason"] == "tool_calls"
    assert first["usage"] == {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    assert (first["model"], second["model"]) == ("small", "small-2")
    assert "usage" not in second


def test_a_stream_ends_with_the_reason_the_usage_and_done(clients: Any) -> None:
    with ChatServer([{"text": "hello", "tool_calls": [CALL]}]) as server:
        answer = clients(server).ask({**ASK, "stream": True, "stream_options": {"include_usage": True}})
        assert answer.headers["Content-Type"] == "text/event-stream"
        lines = [line for line in answer.read().decode().split("\n\n") if line]
    assert lines[-1] == "data: [DONE]"
    *chunks, usage = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content", "") for delta in deltas) == "hello"
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert "".join(call["function"]["arguments"] for call in calls) == '{"path": "a.txt"}'
    assert [call.get("id") for call in calls] == ["call_1_0", None, None]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 15)


def test_a_stream_tells_usage_only_to_who_asks(clients: Any) -> None:
    with ChatServer([{"text": "hello"}]) as server:
        assert b"usage" not in clients(server).ask({**ASK, "stream": True}).read()


def test_an_error_has_its_status_headers_and_body(clients: Any) -> None:
    limited = {"status": 429, "headers": {"retry-after": "0"}, "body": {"error": {"message": "slow down"}}}
    with ChatServer([{"error": limited}, {"error": {"status": 503}}, {"text": "ok"}]) as server:
        client = clients(server)
        first = client.ask(ASK)
        assert (first.status, first.headers["retry-after"]) == (429, "0")
        assert json.load(first)["error"]["message"] == "slow down"
        second = client.ask(ASK)
        assert (second.status, json.load(second)["error"]["message"]) == (503, "scripted error")
        assert client.text() == "ok"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("cut_after", [0, 100])
def test_a_connection_is_cut_after_so_many_bytes(clients: Any, *, stream: bool, cut_after: int) -> None:
    with ChatServer([{"text": "long" * 100, "cut_after": cut_after}]) as server:
        answer = clients(server).ask({**ASK, "stream": stream})
        with pytest.raises(http.client.IncompleteRead) as cut:
            answer.read()
    assert len(cut.value.partial) == cut_after


def test_an_answer_can_be_slow_and_the_end_of_the_server_is_not(clients: Any) -> None:
    with ChatServer([{"text": "late", "delay_s": 0.2}, {"text": "never", "delay_s": 60}]) as server:
        started = time.monotonic()
        assert clients(server).text() == "late"
        assert time.monotonic() - started >= 0.2
        waiting = clients(server)
        waiting.connection.request("POST", "/v1/chat/completions", json.dumps(ASK))
    assert time.monotonic() - started < 10


def test_rows_that_ask_at_once_have_turns_of_their_own(clients: Any) -> None:
    per_prompt = {"by_prompt": {"note": [{"text": f"n{i}"} for i in range(20)], "": [{"text": "other"}]}}
    with ChatServer(
        {"by_model": {"small": per_prompt, "large": [{"text": "l", "repeat": "forever"}]}}
    ) as server:
        rows = [clients(server) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            large = pool.map(lambda row: [row.text({**ASK, "model": "large"}) for _ in range(5)], rows[1:])
            small = [rows[0].text() for _ in range(20)]
            assert list(large) == [["l"] * 5] * 3
        assert small == [f"n{i}" for i in range(20)]
        other = [
            {"role": "tool", "content": "a note"},
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        ]
        assert rows[0].text({"model": "small", "messages": other}) == "other"
        unknown = rows[0].ask({**ASK, "model": "huge"})
        assert (unknown.status, json.load(unknown)["error"]["message"]) == (
            404,
            "The model `huge` does not exist",
        )
        rows[0].connection.request("GET", "/v1/models")
        listed = json.load(rows[0].connection.getresponse())
    assert [model["id"] for model in listed["data"]] == ["large", "small"]


def test_what_is_no_request_is_refused(clients: Any) -> None:
    with ChatServer([]) as server:
        client = clients(server)
        for path, body, status in (
            ("/v1/other", {}, 404),
            ("/v1/messages", {}, 400),
            ("/v1/messages", [], 400),
        ):
            answer = client.ask(body, path)
            assert (answer.status, bool(answer.read())) == (status, True)


def test_a_script_with_a_word_that_no_turn_has_is_refused() -> None:
    with pytest.raises(TypeError, match="txet"):
        ChatServer([{"txet": "typo"}])
    with pytest.raises(TypeError, match="by_model or by_prompt"):
        ChatServer({"by_name": {}})


def test_it_serves_as_a_program(tmp_path: Path) -> None:
    script, port = tmp_path / "script.json", tmp_path / "port"
    script.write_text(json.dumps([{"text": "from a file"}]))
    process = subprocess.Popen(
        [sys.executable, chat.__file__, str(script), "--port-file", str(port)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        url = process.stdout.readline().strip()
        assert urlsplit(url).port == int(port.read_text())
        client = Client(url)
        assert client.text() == "from a file"
        client.connection.close()
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.parametrize("stream", [False, True])
def test_the_openai_client_understands_it(*, stream: bool) -> None:
    openai = pytest.importorskip("openai")
    turn = {"text": "hello", "tool_calls": [CALL], "usage": USAGE}
    limited = {"error": {"status": 429, "headers": {"retry-after": "0"}}}
    with (
        ChatServer([limited, turn]) as server,
        openai.OpenAI(api_key="k", base_url=server.url) as client,
    ):
        models = list(client.models.list())
        if stream:
            manager = client.chat.completions.stream(**ASK, stream_options={"include_usage": True})
            with manager as events:
                answer = events.get_final_completion()
        else:
            answer = client.chat.completions.create(**ASK)
    assert [model.id for model in models] == ["scripted"]
    message = answer.choices[0].message
    assert (message.content, message.tool_calls[0].function.arguments) == ("hello", '{"path": "a.txt"}')
    assert (answer.usage.prompt_tokens_details.cached_tokens, answer.usage.total_tokens) == (60, 120)
    assert server.requests[1].headers["authorization"] == "Bearer k"


@pytest.mark.parametrize("stream", [False, True])
def test_the_anthropic_client_understands_it(*, stream: bool) -> None:
    anthropic = pytest.importorskip("anthropic")
    turn = {"reasoning": "hm", "text": "hello", "tool_calls": [CALL], "usage": USAGE}
    with (
        ChatServer([{"error": {"status": 529}}, turn]) as server,
        anthropic.Anthropic(api_key="k", base_url=server.url.removesuffix("/v1")) as client,
    ):
        if stream:
            with client.messages.stream(**ASK, max_tokens=99) as events:
                answer = events.get_final_message()
        else:
            answer = client.messages.create(**ASK, max_tokens=99)
    thought, text, call = answer.content
    assert (thought.thinking, text.text, call.input) == ("hm", "hello", {"path": "a.txt"})
    assert answer.stop_reason == "tool_use"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (30, 20)
    assert (answer.usage.cache_read_input_tokens, answer.usage.cache_creation_input_tokens) == (60, 10)
