#!/usr/bin/env python3
"""Prints the licences of all crates whose code is in the binary, and of the C sources that some of them carry.

Reads what cargo knows of the workspace and the licence files in the crates' sources; fails where a crate has neither a file
nor a licence whose text is known.
"""

import json
import subprocess
import sys
from pathlib import Path

NAMES = ("license", "licence", "copying", "copyright", "notice", "unlicense")
# Sources of C libraries lie deeper than the crate's own files, such as LuaJIT's COPYRIGHT.
DEPTH_MAX = 3
MIT = """Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated \
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to \
use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom \
the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES \
OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE \
LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR \
IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


def crates(root):
    """Packages from elsewhere that the binary is built from."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host()]
    metadata = json.loads(subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    pending = [package["id"] for package in packages.values() if package["name"] == "dbduel"]
    seen = set(pending)
    while pending:
        for dependency in nodes[pending.pop()]["deps"]:
            # Build dependencies too: they bring the C sources of LuaJIT and SQLite.
            kinds = {kind["kind"] for kind in dependency["dep_kinds"]}
            if kinds != {"dev"} and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                pending.append(dependency["pkg"])
    found = [packages[name] for name in seen if packages[name]["source"]]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def host():
    version = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return next(line.split()[1] for line in version.splitlines() if line.startswith("host: "))


def texts(package, apache):
    """The texts of a crate's licences, its own files where it has some."""
    folder = Path(package["manifest_path"]).parent
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.suffix in ("", ".md", ".txt")
        and path.name.lower().startswith(NAMES)
        and len(path.relative_to(folder).parts) <= DEPTH_MAX
    ]
    found = [path.read_text(encoding="utf-8", errors="replace").strip() for path in files]
    if found:
        return found
    holders = ", ".join(package["authors"]) or f"the authors of {package['name']}"
    expression = package["license"] or ""
    if "MIT" in expression:
        return [f"Copyright (c) {holders}\n\n{MIT}".strip()]
    if "Apache-2.0" in expression:
        return [apache]
    sys.exit(f"{package['name']} {package['version']} ({expression}): no licence file, and no text for that licence is known")


def main():
    root = Path(__file__).resolve().parent.parent
    apache = (root / "LICENSE-APACHE").read_text(encoding="utf-8").strip()
    by_text = {}
    listed = crates(root)
    for package in listed:
        for text in dict.fromkeys(texts(package, apache)):
            by_text.setdefault(text, []).append(package)
    print("dbduel contains code of these packages, under the licences that follow.\n")
    for package in listed:
        print(f"{package['name']} {package['version']}: {package['license']} {package['repository'] or ''}".rstrip())
    for text, users in by_text.items():
        names = ", ".join(f"{package['name']} {package['version']}" for package in users)
        print(f"\n{'=' * 80}\n{names}\n{'=' * 80}\n\n{text}")


if __name__ == "__main__":
    main()
