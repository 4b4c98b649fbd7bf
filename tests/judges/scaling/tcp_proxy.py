"""A TCP proxy in front of one server, which can stop forwarding or refuse connections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class TCPProxy:
    """Forwards every connection to `target`, a port of this machine or a socket's path, until it is told not to."""

    def __init__(self, target: int | str) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._is_refusing = False
        # The loop runs in its thread only: the tests' own thread has one of Playwright's as soon as a browser is open.
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        listening = asyncio.start_server(self._forward, "127.0.0.1", 0, backlog=500)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result(60)
        self.port = int(self._server.sockets[0].getsockname()[1])

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Forward no byte within the block; connections stay open, and new ones are taken."""
        self._loop.call_soon_threadsafe(self._flowing.clear)
        yield
        self._loop.call_soon_threadsafe(self._flowing.set)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Close every connection, and each new one at once within the block."""
        self._loop.call_soon_threadsafe(self._refuse)
        yield
        self._is_refusing = False

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            self._refuse()
            self._flowing.set()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _refuse(self) -> None:
        self._is_refusing = True
        for writer in self._writers:
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        pair = [writer]
        self._writers.add(writer)
        try:
            await self._flowing.wait()
            if self._is_refusing:
                return
            if isinstance(self._target, str):
                there = await asyncio.open_unix_connection(self._target)
            else:
                there = await asyncio.open_connection("127.0.0.1", self._target)
            pair.append(there[1])
            self._writers.add(there[1])
            ways = [
                asyncio.ensure_future(self._pass(reader, there[1])),
                asyncio.ensure_future(self._pass(there[0], writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
        except (OSError, asyncio.CancelledError):
            pass  # the server isn't there, or the test is over
        finally:
            self._tasks.discard(task)
            for each in pair:
                self._writers.discard(each)
                each.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
