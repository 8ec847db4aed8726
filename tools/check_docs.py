#!/usr/bin/env python3
"""Proves that the documents hang together.

    tools/check_docs.py [ROOT]

Every relative link in a Markdown file names a file that exists and, where it has one, a heading
that exists; every module has a README.md that names its headers; every rule below
src/traindbg/rules/builtin has a page below docs/rules and the other way round. Prints one line per
violation and exits 1 when there is any.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+(?:\([^()\s]*\))?)(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
SKIPPED_FOLDERS = {".git", ".venv", "build", "dist", "node_modules"}
# Files in rules/builtin that are shared by rules and are no rules themselves say so by this ending.
SHARED_SUFFIXES = ("_common", "_util", "_support")


def markdown_files(root: Path) -> list[Path]:
    """The Markdown files git knows or would add; all of them where there is no git."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "*.md"],
        check=False,
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:
        return sorted(root / line for line in listed.stdout.splitlines() if (root / line).is_file())
    return sorted(
        file
        for file in root.rglob("*.md")
        if not SKIPPED_FOLDERS & set(file.relative_to(root).parts)
    )


def prose_lines(text: str) -> list[tuple[int, str]]:
    """Line number and line, without fenced code blocks and without inline code."""
    lines = []
    fence: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.lstrip()
        if stripped.startswith(("```", "~~~")):
            fence = None if fence == stripped[:3] else fence or stripped[:3]
            continue
        if fence is None:
            lines.append((number, line))
    return lines


def anchor_of(heading: str) -> str:
    """The anchor that a heading gets: lower case, punctuation dropped, spaces to hyphens."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[`*]", "", text).lower()
    text = re.sub(r"[^\w\- ]", "", text)
    return text.replace(" ", "-")


def anchors_in(file: Path) -> set[str]:
    anchors: set[str] = set()
    for _, line in prose_lines(file.read_text()):
        match = HEADING.match(line)
        if match:
            anchor = anchor_of(match.group(1))
            candidate, count = anchor, 0
            while candidate in anchors:
                count += 1
                candidate = f"{anchor}-{count}"
            anchors.add(candidate)
    return anchors


def check_links(root: Path) -> list[str]:
    errors = []
    for file in markdown_files(root):
        for number, line in prose_lines(file.read_text()):
            for target in LINK.findall(re.sub(r"`[^`]*`(?!\])", "", line)):
                if re.match(r"[a-z][a-z0-9+.-]*:", target):
                    continue  # another place than this repository
                path, _, anchor = target.partition("#")
                place = f"{file.relative_to(root)}:{number}"
                goal = (file.parent / path).resolve() if path else file
                if not goal.exists():
                    errors.append(f"{place}: link to {path}, which does not exist")
                elif anchor and goal.suffix == ".md" and anchor not in anchors_in(goal):
                    errors.append(f"{place}: link to {target}, but there is no such heading")
    return errors


def check_modules(root: Path) -> list[str]:
    source = root / "src" / "traindbg"
    if not source.is_dir():
        return []
    errors = []
    for module in sorted(source.iterdir()):
        readme = module / "README.md"
        if not module.is_dir():
            continue
        if not readme.is_file():
            errors.append(f"{module.relative_to(root)}: no README.md")
            continue
        words = set(re.findall(r"[`(](\w+)", readme.read_text()))
        errors += [
            f"{header.relative_to(root)}: not named in the module's README.md"
            for header in sorted(module.glob("*.h"))
            if header.stem not in words
        ]
    return errors


def check_rule_pages(root: Path) -> list[str]:
    builtin = root / "src" / "traindbg" / "rules" / "builtin"
    pages_folder = root / "docs" / "rules"
    rules = {file.stem for file in builtin.glob("*.cc") if not file.stem.endswith(SHARED_SUFFIXES)}
    pages = {file.stem for file in pages_folder.glob("*.md")} - {"README", "index"}
    errors = [f"docs/rules/{name}.md: missing, the rule has no page" for name in rules - pages]
    errors += [f"docs/rules/{name}.md: there is no such rule" for name in pages - rules]
    return sorted(errors)


def check(root: Path) -> list[str]:
    """All violations below `root`, as printable lines."""
    return check_links(root) + check_modules(root) + check_rule_pages(root)


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]).resolve() if arguments else Path(__file__).resolve().parent.parent
    errors = check(root)
    for error in errors:
        print(error)
    if errors:
        print(f"docs: {len(errors)} violations")
        return 1
    print(
        f"docs: links, module READMEs and rule pages of {len(markdown_files(root))} files are right"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
