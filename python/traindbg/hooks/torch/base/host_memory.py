"""How much more memory this process may take of its machine."""

from __future__ import annotations

from pathlib import Path

_UNLIMITED = 1 << 60  # what version 1 of control groups says instead of a word is above it


def memory_left(root: Path = Path("/")) -> int | None:
    """Bytes that are left before the machine, or a control group, has none; None: not told.

    `root`: where `proc` and `sys` are. What is there of files that could be read again counts as
    left.
    """
    left = [_left_of_machine(root), *_left_of_groups(root)]
    told = [each for each in left if each is not None]
    return max(min(told), 0) if told else None


def _left_of_machine(root: Path) -> int | None:
    kibibytes = _table(root / "proc/meminfo").get("MemAvailable:")
    return None if kibibytes is None else kibibytes * 1024


def _left_of_groups(root: Path) -> list[int | None]:
    """Of the groups of this process and all above them."""
    left = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        top = root / "sys/fs/cgroup"
        if controllers == "":
            names = ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            top /= "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        # A container sees its own group as the top, though the path may be the machine's.
        here = top / path.strip("/")
        for group in {top, here, *(p for p in here.parents if top in p.parents)}:
            left.append(_left_of_group(group, *names))
    return left


def _left_of_group(group: Path, limit_name: str, used_name: str, files: str) -> int | None:
    limit, used = _number(group / limit_name), _number(group / used_name)
    if limit is None or used is None or limit >= _UNLIMITED:
        return None
    return limit - used + _table(group / "memory.stat").get(files, 0)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _table(path: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    words = [line.split() for line in _text(path).splitlines()]
    return {w[0]: int(w[1]) for w in words if len(w) > 1 and w[1].isdecimal()}
