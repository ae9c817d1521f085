"""Fills a disk of a megabyte, makes room, and takes its right to be written away; prints what the commands said.

Usage: on_a_small_disk.py DIRECTORY    (in a mount namespace of its own, where a file system may be mounted)
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

disk = Path(sys.argv[1])
seen: dict[str, Any] = {}


def spl(*words: str, said: str = "") -> dict[str, Any]:
    """Run a command and return its status, its document, and what stands on standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "spl", "--home", str(disk / "home"), "--json", *words],
        input=said,
        capture_output=True,
        text=True,
        check=False,
    )
    return {"status": done.returncode, "document": json.loads(done.stdout or "null"), "err": done.stderr}


def note(number: int) -> str:
    """Return a record of about 20 KB."""
    return json.dumps(
        {"kind": "acme.note.v1", "body": {"number": number, "text": "n" * 10_000, "more": "m" * 10_000}}
    )


def entries() -> list[str]:
    """Return the ids in the log."""
    return [entry["id"] for entry in spl("log")["document"]["entries"]]


def mount(options: str, *more: str) -> None:
    """Mount the disk, or mount it otherwise."""
    subprocess.run(["mount", *more, "-o", options, "tmpfs", str(disk)], check=True)


mount("size=1m", "-t", "tmpfs")
acknowledged = []
filler = disk / "filler"
filler.write_bytes(bytes(300_000))
for turn in range(60):
    done = spl("put", "-", said=note(turn))
    if done["status"]:
        break
    acknowledged.append(done["document"]["id"])
seen |= {"full": done, "acknowledged": acknowledged, "held": entries(), "verify full": spl("verify")}
filler.unlink()
seen |= {"after": spl("put", "-", said=note(99)), "verify after": spl("verify"), "before": entries()}
mount("remount,ro")
seen |= {"read-only": spl("put", "-", said=note(100)), "init": spl("init"), "held read-only": entries()}
seen |= {"verify read-only": spl("verify")}
print(json.dumps(seen))
