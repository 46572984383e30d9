"""Files that are there whole or not at all, also after a power cut."""

import os
from pathlib import Path

from crashbo.errors import InputError


def write_whole(path: Path, text: str) -> None:
    """Replace a file in one step: a draft beside it, on the disk before it takes the name.

    Raises:
        InputError: if it is a folder.
        OSError: the file is as it was before.
    """
    if path.is_dir():
        raise InputError(f"`path` must be a file; {path} is a folder. Say a file in it.")
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk; nothing happens where a system cannot do that."""
    try:
        handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        return
    finally:
        os.close(handle)


def check_writable(name: str, path: Path) -> None:
    """Refuse a file that `write_whole` could not replace, before anything depends on it.

    Raises:
        InputError: that says why.
    """
    if path.is_dir():
        raise InputError(f"`{name}` must be a file; {path} is a folder. Say a file in it.")
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text("")
        draft.unlink()
    except OSError as error:
        raise InputError(f"`{name}` must be a file that can be written; {path} cannot ({error.strerror}).") from error
