"""Work that is spread over the processor's cores, in processes that end with the one that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import connection
from typing import Any, TypeVar

from spl.errors import OperationFailedError

J = TypeVar("J")
T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 3  # tasks for each worker that wait their turn: enough that none is idle, few enough for the memory


def spread(make: Callable[[J], Callable[[T], R]], job: J, tasks: Iterable[T], *, workers: int) -> Iterator[R]:
    """Yield the result of each task, in the order of the tasks.

    The processes are new ones, not copies: a copy would share the open database with this one.

    Args:
        make: Makes, once in each process, the function that carries out tasks.
        job: What it is made from.
        tasks: Plain values.
        workers: How many processes.

    Raises:
        OperationFailedError: A process was killed.
    """
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=(make, job))
    waiting: deque[Future[R]] = deque()
    queue = iter(tasks)
    try:
        waiting.extend(pool.submit(_carry_out, task) for task in islice(queue, workers * _AHEAD))
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(pool.submit(_carry_out, task) for task in islice(queue, 1))
            yield result
        pool.shutdown()
    except BrokenProcessPool as error:
        raise OperationFailedError("a process that was checking the log was killed") from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if waiting:  # this one was interrupted, or failed
            for process in multiprocessing.active_children():
                process.terminate()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_carrying_out: list[Callable[[Any], Any]] = []  # the one function of this process, once it is made


def _start(make: Callable[[Any], Callable[[Any], Any]], job: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that started this process decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _carrying_out.append(make(job))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _carry_out(task: object) -> Any:  # noqa: ANN401 - whatever the function returns
    return _carrying_out[0](task)
