#!/usr/bin/env python3
"""Includes between rooms follow the arrows: a file of src/ROOM may include its own room and those
its USES line in CMakeLists.txt reaches, directly or through others. 
Usage: check_arrows.py [ROOT]"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([a-z_0-9]+)/[^"]+"', re.M)
ROOM = re.compile(r"^warploom_room\((\w+)([^)]*)\)", re.M)


def reachable_rooms(cmake):
    """room -> every room it may include, itself among them."""
    reach = {}
    for name, rest in ROOM.findall(cmake):
        uses = re.search(r"\bUSES((?:\s+\w+)*?)\s*(?:LINK|$)", rest)
        reach[name] = {name}
        for used in uses.group(1).split() if uses else []:
            if used not in reach:
                raise SystemExit(
                    f"CMakeLists.txt: room {name} uses {used}, which is not set out before it"
                )
            reach[name] |= reach[used]
    return reach


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    reach = reachable_rooms((root / "CMakeLists.txt").read_text())
    faults, files = [], 0
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".h", ".cpp", ".def"):
            continue
        files += 1
        room = path.relative_to(root / "src").parts[0]
        if room not in reach:
            faults.append(f"{path.relative_to(root)}: src/{room} is no room of CMakeLists.txt")
            continue
        text = path.read_text()
        for match in INCLUDE.finditer(text):
            target = match.group(1)
            if (root / "src" / target).is_dir() and target not in reach[room]:
                line = text.count("\n", 0, match.start()) + 1
                faults.append(
                    f"{path.relative_to(root)}:{line}: {room} may not include {target}; "
                    f"it may include {', '.join(sorted(reach[room]))}"
                )
    print("\n".join(faults) if faults else f"{files} files keep the arrows")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
