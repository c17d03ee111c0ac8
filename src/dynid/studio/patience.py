"""Connections that do nothing are closed: without a complete request, or without reading what they asked for.

The server itself closes only idle connections that were served before. A client that sends one byte of a request now
and then would hold one of the connections that are allowed at a time for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

__all__ = ["PatientProtocol"]

# Seconds between two looks at a connection; one that did nothing between two of them is closed.
_PERIOD = 15.0


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """HTTP with patience of one to two periods; uploads that stop and websockets have limits of their own."""

    _before: tuple[Any, int] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.loop.call_later(_PERIOD, self._look)

    def _look(self) -> None:
        """Close the connection if it waits for the same request, or for the same bytes to be read, as the last time."""
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        unread = self.transport.get_write_buffer_size()
        waits = unread > 0 or self.cycle is None or self.cycle.response_complete
        now = (self.cycle, unread) if waits else None
        if now is not None and now == self._before:
            self.transport.abort()  # to close it would wait for the client
            return
        self._before = now
        self.loop.call_later(_PERIOD, self._look)
