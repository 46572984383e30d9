"""A PostgreSQL server of our own, for tests and for the tutorial on workers."""

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MISSING = "no PostgreSQL server binaries: `apt-get install postgresql`, or put initdb and pg_ctl on the PATH"


def find_binaries() -> Path | None:
    """The folder with initdb and pg_ctl."""
    asked = shutil.which("pg_config")
    said = (
        [subprocess.run([asked, "--bindir"], capture_output=True, text=True, check=True).stdout.strip()]
        if asked
        else []
    )
    found = shutil.which("initdb")
    folders = [*map(Path, said), *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    folders += [Path(found).resolve().parent] if found else []
    return next((one for one in folders if (one / "initdb").exists() and (one / "pg_ctl").exists()), None)


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server of our own on the loopback.

    Attributes:
        url: password included.
        start, stop: as they say; what is in it stays. To stop cuts all connections.
    """

    url: str
    start: Callable[[], None]
    stop: Callable[[], None]


@contextmanager
def running_server(binaries: Path) -> Iterator[Server]:
    """A server on the loopback while the block lasts."""
    root = os.geteuid() == 0
    user: dict[str, Any] = {"user": "postgres"} if root else {}  # the server refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="crashbo-postgres-"))
    (folder / "password").write_text("s3cret")
    if root:
        for path in (folder, folder / "password"):
            shutil.chown(path, "postgres")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def call(program: str, *args: object) -> None:
        words = [str(binaries / program), *map(str, args)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd=folder, **user)

    data, settings = folder / "data", f"-p {port} -c listen_addresses=127.0.0.1 -c fsync=off -k {folder}"
    login = "crashbo" if root else getpass.getuser()
    call("initdb", "-D", data, "-U", login, "-A", "scram-sha-256", f"--pwfile={folder / 'password'}", "--no-sync")

    def start() -> None:
        call("pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", settings, "start")

    def stop() -> None:
        call("pg_ctl", "-D", data, "-m", "immediate", "stop")

    start()
    try:
        yield Server(f"postgresql://{login}:s3cret@127.0.0.1:{port}/postgres", start, stop)
    finally:
        stop()
        shutil.rmtree(folder)
