"""`run_step`: run a step over blocks in processes of this machine or on Ray; finished blocks are not run again."""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any, Literal, get_args

from curation.core.engines.shards import Block, Entry, Shards, Step, begin, finish, finished_entry, write_shard
from curation.core.errors import CurationError, EngineError, MissingExtraError, UsageError, install_command
from curation.core.writing import locked, make_folder

EngineName = Literal["local", "ray"]
_SHARD = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})")
_RETRIES = 3
_KILLED = "A worker process was killed"
_LACKS_MEMORY = "often for lack of memory: run the command again with fewer --workers; finished blocks are kept"


Outcome = Entry | EngineError
"""The entry of a finished block, or why it failed, from another process or machine."""


def run_step(
    step: Step,
    blocks: Iterable[Block],
    *,
    out: Path,
    engine: EngineName = "local",
    workers: int | None = None,
    shard: str | None = None,
) -> Shards:
    """Run a step over blocks into a folder of shards; continue an earlier call that was interrupted.

    The digest of the output depends only on the step and the blocks: not on the engine, the number of workers, the
    order in which blocks finish, how often the work was interrupted, or into how many calls it was split.

    Parameters
    ----------
    step : Step
    blocks : iterable of Block
        Taken one by one as workers become free, so that it need not fit into memory.
    out : Path
        A new folder, or that of an earlier call; on a cluster, one that every machine sees.
    engine : {"local", "ray"}
        ``local``: processes of this machine; one block, or one worker, in this process. ``ray``: tasks of Ray, on the
        cluster of ``RAY_ADDRESS`` or the connected one, else on this machine until the work ends.
    workers : int, optional
        Number of blocks that run at a time; by default one a core, on a cluster its capacity.
    shard : str, optional
        ``I/N``: run every N-th block from the I-th on, for one task of an array of N; the result holds these blocks
        alone and the folder is not finished. After all tasks, a call without `shard` finishes the folder.

    Raises
    ------
    EngineError
        A block fails: the first failure ends the work, and finished blocks are kept. Or the folder holds other data.
    MissingExtraError
        Ray is not installed.
    """
    if engine not in get_args(EngineName):
        raise UsageError("Unknown engine", expected=", ".join(get_args(EngineName)), found=repr(engine)[:80])
    if workers is not None and not 1 <= workers <= 1 << 16:
        raise UsageError("--workers needs a number from 1 to 65,536", found=str(workers))
    number, total = (1, 1) if shard is None else _shard_of(shard)
    make_folder(out)
    with locked(out) if total == 1 else nullcontext():
        index = begin(out, step, is_alone=total == 1)
        entries: dict[str, Entry | None] = {}
        pending = _pending(islice(_listed(blocks, step), number - 1, None, total), out, index, entries)
        new: list[Entry] = []
        run = _on_ray if engine == "ray" else _in_processes
        # If a block fails, close at once: processes or a cluster would run until the error is garbage-collected.
        with closing(run(_Work(step, out), pending, workers)) as outcomes:
            for outcome in outcomes:
                if isinstance(outcome, EngineError):
                    raise outcome
                entries[outcome.block] = outcome
                new.append(outcome)
        done = tuple(entry for entry in entries.values() if entry is not None)
        made = Shards(out, done, step.digest, len(new), len(done) - len(new), sum(entry.rows for entry in new))
        return finish(made) if total == 1 else made


def _shard_of(text: str) -> tuple[int, int]:
    match = _SHARD.fullmatch(text)
    number, total = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= total:
        expected = "I/N, with I from 1 to N, such as 3/64; after all tasks, the same command without --shard"
        raise UsageError("--shard cannot use this value", expected=expected, found=text[:80])
    return number, total


def _pending(
    blocks: Iterable[Block], folder: Path, index: dict[str, Entry], entries: dict[str, Entry | None]
) -> Iterator[Block]:
    """Yield the blocks that are not finished, and collect the entries of all blocks in their order."""
    for block in blocks:
        entries[block.name] = finished_entry(folder, block, index)
        if entries[block.name] is None:
            yield block


def _listed(blocks: Iterable[Block], step: Step) -> Iterator[Block]:
    """Yield blocks, with their progress on standard error if it is a terminal; refuse a name that appears twice."""
    from tqdm import tqdm

    names: set[str] = set()
    for block in tqdm(blocks, desc=step.name, unit=" blocks", disable=None, leave=False):
        if block.name in names:
            where, hint = block.name[:200], "give every part of the corpus once"
            raise EngineError("Two blocks share a name", where=where, hint=hint)
        names.add(block.name)
        yield block


@dataclass(frozen=True)
class _Work:
    """A step and its output folder: sent to each worker once."""

    step: Step
    folder: Path

    def __call__(self, block: Block) -> Outcome:
        import pyarrow

        try:
            with one_core():
                tables = [self.step(table) for table in block.tables()]
            table = pyarrow.concat_tables(tables) if tables else pyarrow.table({})
            return write_shard(self.folder, block, table)
        except CurationError as error:
            where = f"block {block.name}" + (f": {error.where}" if error.where else "")
            return EngineError(error.what, where=where, expected=error.expected, found=error.found, hint=error.hint)
        # A decoder or a disk may raise anything: report the block in which it happened.
        except Exception as error:
            message = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            return EngineError(f"The step {self.step.name} failed", where=f"block {block.name}", found=message)


def one_core() -> AbstractContextManager[Any]:
    """Keep libraries of linear algebra to one thread: a worker has one core, and threads may change last digits."""
    return _limits(len(sys.modules))()


@lru_cache(1)
def _limits(modules: int) -> Callable[[], AbstractContextManager[Any]]:
    # Modules load these libraries. The search for them takes a fifth of a block's time, so it is repeated only after
    # the number of modules has changed.
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return nullcontext
    return partial(ThreadpoolController().limit, limits=1)


def cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


_work: _Work | None = None
"""In a worker process: the work that it was started for."""


def _start(work: _Work) -> None:
    global _work
    # The driver handles Ctrl-C and ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_driver, daemon=True).start()
    import pyarrow

    # A worker has one core: its threads would only compete with those of other workers.
    pyarrow.set_cpu_count(1)
    _work = work


def _end_with_driver() -> None:
    """End this process when the one that started it ends: a pool's workers would wait for work forever."""
    driver = multiprocessing.parent_process()
    assert driver is not None  # noqa: S101
    driver.join()
    os._exit(1)


def _run(block: Block) -> Outcome:
    assert _work is not None  # noqa: S101
    return _work(block)


def _in_processes(work: _Work, blocks: Iterator[Block], workers: int | None) -> Generator[Outcome, None, None]:
    first = list(islice(blocks, 2))
    workers = workers or cores()
    if len(first) < 2 or workers == 1:
        # One block, or one core, is not worth starting processes, which takes a second.
        yield from map(work, chain(first, blocks))
        return
    running: set[Future[Outcome]] = set()
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start, (work,))
    try:
        for block in chain(first, blocks):
            # Only a step defined in a user's script needs that script and its guard.
            with nullcontext() if type(work.step).__module__ == "__main__" else _unguarded_main():
                running.add(pool.submit(_run, block))
            while len(running) > 2 * workers:
                yield from _finished(running)
        while running:
            yield from _finished(running)
    except (BrokenProcessPool, BrokenPipeError):
        # The pool ends the processes that it knows of, and would wait for ever for one that was being started.
        for process in list(pool._processes.values()):
            process.kill()
        raise EngineError(_KILLED, hint=_LACKS_MEMORY) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _finished(running: set[Future[Outcome]]) -> Iterator[Outcome]:
    done = wait(running, return_when=FIRST_COMPLETED).done
    running -= done
    yield from (future.result() for future in done)


@contextmanager
def _unguarded_main() -> Iterator[None]:
    """Prevent new processes from running the user's script again, so that it needs no main guard."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _on_ray(work: _Work, blocks: Iterator[Block], workers: int | None) -> Generator[Outcome, None, None]:
    with warnings.catch_warnings():
        # Ray warns about its future changes, and leaves sockets open until garbage collection.
        warnings.simplefilter("ignore")
        with _ray(workers) as ray:
            yield from _in_tasks(ray, work, blocks, workers)


def _in_tasks(ray: Any, work: _Work, blocks: Iterator[Block], workers: int | None) -> Iterator[Outcome]:
    """Yield the outcomes of tasks, a limited number at a time: neither Ray nor this process holds the whole corpus."""
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_Work.__call__)
    # Once for each machine, however many tasks run there.
    shared = ray.put(work)
    running: dict[Any, Block] = {}
    try:
        while True:
            # Twice the current cores of the cluster: waiting tasks make it grow.
            most = workers or 2 * int(ray.cluster_resources().get("CPU", 1))
            for block in islice(blocks, max(0, most - len(running))):
                running[task.remote(shared, block)] = block
            if not running:
                return
            done, _ = ray.wait(list(running))
            for reference in done:
                yield _outcome_of(ray, reference, running.pop(reference))
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def _outcome_of(ray: Any, reference: Any, block: Block) -> Outcome:
    try:
        outcome: Outcome = ray.get(reference)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
        return EngineError(_KILLED, where=f"block {block.name}", hint=_LACKS_MEMORY)
    except ray.exceptions.RayError as error:
        text = " ".join(str(error).split())[-300:]
        hint = "run the command again: finished blocks are kept"
        return EngineError("Ray failed", where=f"block {block.name}", found=text, hint=hint)
    return outcome


@contextmanager
def _ray(workers: int | None) -> Iterator[Any]:
    """Yield a connected Ray; a Ray that is started here is stopped here."""
    # No usage statistics are sent.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise MissingExtraError("The engine ray is not installed", hint=install_command("ray")) from None
    is_connected = ray.is_initialized()
    if not is_connected:
        address = os.environ.get("RAY_ADDRESS")
        limits: dict[str, Any] = {} if address else {"num_cpus": workers or cores()}
        try:
            ray.init(
                address or "local", **limits, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
            )
        # Ray raises a plain Exception where its own processes do not start in time.
        except Exception as error:
            raise EngineError(
                "Ray cannot be reached or started",
                where=f"RAY_ADDRESS={address}" if address else None,
                found=" ".join(str(error).split())[:300],
            ) from None
    try:
        yield ray
    finally:
        if not is_connected:
            ray.shutdown()
