"""The built-in agent as a process of its own, before a scripted model server, and the events that it printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from servers.chat import ChatServer

KEY = "SCRIPTED_KEY"


class Told(NamedTuple):
    """How the agent ended and what it said."""

    status: int
    events: list[dict[str, Any]]
    err: str

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a type."""
        return [event for event in self.events if event["type"] == kind]

    @property
    def end(self) -> dict[str, Any]:
        """The last event, which must be the only end."""
        assert [event["type"] for event in self.events].count("run_end") == 1
        assert self.events[-1]["type"] == "run_end"
        return self.events[-1]

    @property
    def final(self) -> Any:
        """The document of the pipeline."""
        (final,) = self.of("final")
        return json.loads(final["text"])

    @property
    def errors(self) -> str:
        """What went wrong, in its own words."""
        return "\n".join(event["message"] for event in self.of("error"))

    @property
    def tokens(self) -> tuple[int, int]:
        """The sums of prompt and completion tokens over usage events."""
        usage = self.of("usage")
        return sum(e.get("promptTokens", 0) for e in usage), sum(e.get("completionTokens", 0) for e in usage)


def variables(directory: Path, url: str, *, key: str | None = "secret-of-the-test") -> dict[str, str]:
    """Return an environment in which the server is configured as the provider `local`."""
    configured = directory / "config" / "spl"
    configured.mkdir(parents=True, exist_ok=True)
    (configured / "config.toml").write_text(f'[providers.local]\nbase_url = "{url}"\napi_key_env = "{KEY}"\n')
    kept = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    kept |= {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(directory)}
    kept |= {"XDG_CONFIG_HOME": str(directory / "config"), "SPL_HOME": str(directory / "home")}
    return kept if key is None else kept | {KEY: key}


def definition(directory: Path, **behaviour: Any) -> Path:
    """Write a definition of one stage."""
    made = {
        "adapter": "pipeline",
        "model": "local:small",
        "instructions": "Do what is asked.",
        "stages": [{"name": "work"}],
        "max_iterations": 1,
        **behaviour,
    }
    path = directory / "definition.json"
    path.write_text(json.dumps(made))
    return path


def told(
    script: Any,
    directory: Path,
    *words: str,
    prompt: str = "Do it.",
    key: str | None = "secret-of-the-test",
    **behaviour: Any,
) -> tuple[Told, ChatServer]:
    """Run the agent in `directory / "workspace"` and return what it told, and the server that it asked."""
    workspace = directory / "workspace"
    workspace.mkdir(exist_ok=True)
    with ChatServer(script) as server:
        done = subprocess.run(
            [
                *(sys.executable, "-P", "-m", "spl", "--no-trust", "exec", "--output-format", "stream-json"),
                *("--definition", str(definition(directory, **behaviour))),
                *words,
                prompt,
            ],
            cwd=workspace,
            env=variables(directory, server.url, key=key),
            capture_output=True,
            check=False,
            timeout=60,
        )
    assert b"Traceback" not in done.stderr
    assert done.stdout, done.stderr
    events = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert {event["schemaVersion"] for event in events} == {2}
    assert len({event["runId"] for event in events}) == 1
    assert events[0]["type"] == "run_start"
    result = Told(done.returncode, events, done.stderr.decode())
    assert result.end["exitCode"] == done.returncode
    return result, server
