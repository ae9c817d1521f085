"""The command line with a limit of a fifth of a second on the wait for the lock."""

from spl.__main__ import main
from spl.store.lock import write_lock

write_lock.__wrapped__.__kwdefaults__["wait_limit_s"] = 0.2  # type: ignore[attr-defined]
main()
