"""One end of a QUIC download by aioquic: `quic_peer.py server|client QLOG-DIRECTORY BYTES PORT`."""

import asyncio
import datetime as dt
import os
import socket
import ssl
import sys
from pathlib import Path

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent, StreamDataReceived
from aioquic.quic.logger import QuicFileLogger, QuicLoggerTrace
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

ONE_DAY = dt.timedelta(days=1)


class Sender(QuicConnectionProtocol):
    """Answers each request with bytes."""

    def quic_event_received(self, event: QuicEvent) -> None:
        """Answers a request that ended."""
        if isinstance(event, StreamDataReceived) and event.end_stream:
            self._quic.send_stream_data(event.stream_id, bytes(int(sys.argv[3])), end_stream=True)
            self.transmit()


class Logger(QuicFileLogger):
    """Writes logs elsewhere and moves them when they are complete."""

    def end_trace(self, trace: QuicLoggerTrace) -> None:
        """Writes the log of a connection."""
        super().end_trace(trace)
        for written in Path(self.path).iterdir():
            written.replace(Path(sys.argv[2]) / written.name)


async def serve_downloads(configuration: QuicConfiguration) -> None:
    """Serves under a certificate that nobody signed, until the process is killed."""
    now = dt.datetime.now(dt.UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "peer")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + ONE_DAY)
    ).sign(key, hashes.SHA256())
    configuration.certificate, configuration.private_key = certificate, key
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    await serve("0.0.0.0", port, configuration=configuration, create_protocol=Sender)
    print(port, flush=True)  # noqa: T201
    await asyncio.Event().wait()


async def download(configuration: QuicConfiguration) -> None:
    """Downloads from the machine of the link's caller."""
    configuration.verify_mode = ssl.CERT_NONE
    configuration.max_data = configuration.max_stream_data = 1 << 26
    caller = os.environ["CWND_LINK_CALLER"]
    async with connect(caller, int(sys.argv[4]), configuration=configuration) as client:
        reader, writer = await client.create_stream()
        writer.write(b"get")
        writer.write_eof()
        assert len(await reader.read()) == int(sys.argv[3])


if __name__ == "__main__":
    role, directory = sys.argv[1:3]
    for each in (directory, f"{directory}.partial"):
        Path(each).mkdir(exist_ok=True)
    chosen = QuicConfiguration(
        is_client=role == "client",
        alpn_protocols=["bytes"],
        quic_logger=Logger(f"{directory}.partial"),
    )
    asyncio.run(download(chosen) if role == "client" else serve_downloads(chosen))
