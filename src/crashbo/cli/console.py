"""The command that serves a study as a local web page."""

from pathlib import Path
from typing import Annotated

import typer

from crashbo.cli.options import StorageOption, StudyOption, stay
from crashbo.errors import InputError

HostOption = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines connect.")]
PortOption = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any that is free.")]
TokenOption = Annotated[
    str | None,
    typer.Option(envvar="CRASHBO_TOKEN", help="At least 16 characters.  [default: drawn anew]"),
]
OpenOption = Annotated[
    bool, typer.Option("--no-token", help="Let in everyone on this machine, without a token; for this machine only.")
]
CertificateOption = Annotated[Path | None, typer.Option("--tls-cert", help="A certificate, for HTTPS.")]
CertificateKeyOption = Annotated[Path | None, typer.Option("--tls-key", help="Its key, if it is in another file.")]
AllowOption = Annotated[
    list[str] | None, typer.Option("--allow-host", help="Another name of this machine, such as that of a proxy.")
]


def console(
    name: Annotated[
        str | None, typer.Argument(metavar="STUDY", help="The study's name, or its file or storage URL.")
    ] = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8765,
    token: TokenOption = None,
    no_token: OpenOption = False,
    tls_cert: CertificateOption = None,
    tls_key: CertificateKeyOption = None,
    allow_host: AllowOption = None,
    browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    storage: StorageOption = None,
    study: StudyOption = None,
) -> None:
    """Open a study as a web page: take suggestions, enter results, press CRASHED, watch the model learn."""
    stay()
    try:
        from crashbo.console.server import Address, is_open, serve
    except ImportError as error:
        raise InputError(f"`crashbo console` needs more packages ({error}). pip install 'crashbo[console]'.") from error
    from crashbo.store.storage import find_place
    from crashbo.store.study import open_study

    if name is not None and is_storage(name):
        storage, name = name, None
    opened = open_study(find_place(storage, study or name))
    address = Address(host, port, token, tuple(allow_host or ()), no_token, tls_cert, tls_key)

    def announce(link: str) -> None:
        typer.echo(f"Console of study {opened.place.study!r} in {opened.place}: {link}")
        if is_open(address):
            encrypted = "" if tls_cert else " The connection is not encrypted."
            typer.echo(f"Anyone with this link can write to the study.{encrypted}")
        typer.echo("Ctrl-C ends it. Nothing is lost: everything is in the study.")
        if browser:
            typer.launch(link)

    serve(opened, address, announce=announce)


def is_storage(text: str) -> bool:
    """Whether a word is a file or a storage URL rather than a study's name."""
    return "://" in text or "/" in text or Path(text).is_file() or Path(text).suffix in (".db", ".journal")
