"""Makes the working tree importable in the virtual environment.

Writes what an editable install would, without building a second time: a path
file for `python/`, metadata with the entry points of pyproject.toml, and the
`mpopt` program as a link to the development build.

Usage: link_package.py ROOT PROGRAM, with the environment's own interpreter.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def project_version(root: Path) -> str:
    """Returns the version that the project() call of CMakeLists.txt states."""
    text = (root / "CMakeLists.txt").read_text()
    found = re.search(r"project\(mpopt [^)]*VERSION ([0-9.]+)", text)
    if found is None:
        sys.exit("link_package: error: CMakeLists.txt states no project version")
    return found[1]


def entry_points(project: dict[str, dict[str, dict[str, str]]]) -> str:
    """Returns the text of entry_points.txt."""
    lines = []
    for group, entries in project.get("entry-points", {}).items():
        lines.append(f"[{group}]")
        lines += [f"{name} = {target}" for name, target in entries.items()]
    return "\n".join(lines) + "\n"


def link(root: Path, program: Path) -> None:
    """Writes path file, metadata and program link for the tree at `root`."""
    site = Path(sysconfig.get_path("purelib"))
    for old in site.glob("mpopt-*.dist-info"):
        for file in old.iterdir():
            file.unlink()
        old.rmdir()
    version = project_version(root)
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    info = site / f"mpopt-{version}.dist-info"
    info.mkdir()
    files = {
        site / "mpopt.pth": f"{root / 'python'}\n",
        info / "METADATA": f"Metadata-Version: 2.1\nName: mpopt\nVersion: {version}\n",
        info / "entry_points.txt": entry_points(project),
        info / "INSTALLER": "tools/dev.sh\n",
    }
    for path, text in files.items():
        path.write_text(text)
    script = Path(sysconfig.get_path("scripts")) / "mpopt"
    script.unlink(missing_ok=True)
    script.symlink_to(program)
    names = [path.relative_to(site) for path in files] + [info.relative_to(site) / "RECORD"]
    # With a record, pip can remove this again when a wheel is installed over it.
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in [*names, script]))


if __name__ == "__main__":
    tree = Path(sys.argv[1]).resolve()
    link(tree, tree / sys.argv[2])
