"""A few processes that run cases of this package together, over gloo."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import tempfile
import traceback
from datetime import timedelta

SECONDS = 120
"""For one case, compilation included; a rank that waits for one that failed gives up earlier."""


def serve(rank, count, store, pipe):
    """Run what the parent asks for until it closes the pipe; answer with what went wrong."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=count,
        timeout=timedelta(seconds=SECONDS / 2),
    )
    common = importlib.import_module("distributed.common")
    while True:
        try:
            name, args = pipe.recv()
        except EOFError:
            os._exit(0)  # the store and the other ranks may be gone already
        try:
            common.start()
            module, _, function = name.partition(".")
            getattr(importlib.import_module(f"distributed.{module}"), function)(*args)
            pipe.send("")
        except BaseException:
            pipe.send(traceback.format_exc())
            os._exit(1)  # the others are no longer in step with this one


class Ranks:
    """`count` processes, started at the first case and again after one that failed."""

    def __init__(self, count):
        self.count = count
        self.processes = []
        self.pipes = []
        self.folder = None

    def run(self, name, *args):
        """Run "module.function" on all ranks; raise AssertionError with their tracebacks."""
        if not self.processes:
            self._start()
        for pipe in self.pipes:
            pipe.send((name, args))
        wrong = {rank: self._answer(pipe) for rank, pipe in enumerate(self.pipes)}
        wrong = {rank: text for rank, text in wrong.items() if text}
        if wrong:
            self.stop()
            texts = [f"--- rank {rank} of {self.count}\n{text}" for rank, text in wrong.items()]
            raise AssertionError(f"{name}{args}\n" + "\n".join(texts))

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self.folder = tempfile.TemporaryDirectory(prefix="mpopt-ranks-")
        store = os.path.join(self.folder.name, "store")
        for rank in range(self.count):
            here, there = context.Pipe()
            args = (rank, self.count, store, there)
            process = context.Process(target=serve, args=args, daemon=True)
            process.start()
            there.close()
            self.processes.append(process)
            self.pipes.append(here)

    def _answer(self, pipe):
        if not pipe.poll(SECONDS):
            return f"no answer within {SECONDS} s"
        try:
            return pipe.recv()
        except (EOFError, OSError):
            return "the process ended"

    def stop(self):
        """End the processes."""
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()
        if self.folder:
            self.folder.cleanup()
        self.processes, self.pipes, self.folder = [], [], None
