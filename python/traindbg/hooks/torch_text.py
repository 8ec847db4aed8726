"""The text of the program that trains, where it says what cannot be seen otherwise."""

from __future__ import annotations

import ast
import os
import warnings

from traindbg.hooks.torch_sources import path_of, sources

_MOST_BYTES = 1 << 20
_MOST_FILES = 8
_files: dict[tuple[str, float], ast.Module | None] = {}


def text_here() -> ast.Module | None:
    """Of the file whose code is running now, of the user's. None: it cannot be read.

    Each file is read once.
    """
    line = sources.here()
    path = path_of(line.file) if line is not None else ""
    try:
        key = (path, os.path.getmtime(path))
        if key not in _files:
            if len(_files) >= _MOST_FILES or os.path.getsize(path) > _MOST_BYTES:
                return None
            _files[key] = None
            with open(path, encoding="utf-8") as file, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _files[key] = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    return _files[key]
