"""A network between workers and their servers that can be cut."""

import asyncio
import urllib.parse


class Network:
    """Passes connections on to servers; while it is cut, it has none and takes none."""

    def __init__(self):
        self.lines, self.connections = [], set()

    async def through(self, url):
        """The same URL by way of this network."""
        parts = urllib.parse.urlsplit(url)
        line = Line(self, parts.hostname, parts.port)
        self.lines.append(line)
        await line.open()
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}{at}127.0.0.1:{line.port}").geturl()

    def cut(self):
        for line in self.lines:
            line.listener.close()
        for writer in list(self.connections):
            writer.transport.abort()

    async def mend(self):
        for line in self.lines:
            await line.open()


class Line:
    def __init__(self, network, host, port):
        self.network, self.target, self.port = network, (host, port), 0

    async def open(self):
        self.listener = await asyncio.start_server(self.connect, "127.0.0.1", self.port)
        self.port = self.listener.sockets[0].getsockname()[1]

    async def connect(self, reader, writer):
        try:
            back, forth = await asyncio.open_connection(*self.target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self.copy(reader, forth), self.copy(back, writer))

    async def copy(self, reader, writer):
        self.network.connections.add(writer)
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            self.network.connections.discard(writer)
            writer.close()
