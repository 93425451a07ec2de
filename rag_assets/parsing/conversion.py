"""Other programs that turn a file into one that can be read: pandoc (into HTML), LibreOffice (into docx or pptx).

A file goes in and comes out by pipes, within the limits of the parsing process. Pandoc runs in its sandbox, in which it
opens no files and no addresses. LibreOffice writes below a temporary folder of its own; it runs no macros, fetches
nothing that a file refers to and, where the system allows it, has no network at all.
"""

import importlib.util
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.processes.confinement import run_program

PANDOC_FORMATS = ("epub", "odt", "org", "rst", "rtf")
OFFICE_TARGETS = {"doc": "docx", "odp": "pptx", "ppt": "pptx"}

_PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="DisableMacrosExecution" oor:op="fuse"
><value>true</value></prop><prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop
></item>
<item oor:path="/org.openoffice.Inet/Settings"><prop oor:name="ooInetProxyType" oor:op="fuse"><value>2</value></prop
><prop oor:name="ooInetHTTPProxyName" oor:op="fuse"><value>127.0.0.1</value></prop><prop oor:name="ooInetHTTPProxyPort"
 oor:op="fuse"><value>9</value></prop><prop oor:name="ooInetHTTPSProxyName" oor:op="fuse"><value>127.0.0.1</value></prop
><prop oor:name="ooInetHTTPSProxyPort" oor:op="fuse"><value>9</value></prop></item>
</oor:items>
"""
# $1 LibreOffice, $2 the format of the file, $3 the format to write, $4 settings
_OFFICE_SCRIPT = """
set -e
umask 077
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ulimit -f 1048576
mkdir -p "$folder/profile/user"
printf '%s' "$4" > "$folder/profile/user/registrymodifications.xcu"
cat > "$folder/in.$2"
alone=
if unshare --map-root-user --net true 2>/dev/null; then alone="unshare --map-root-user --net"; fi
$alone "$1" "-env:UserInstallation=file://$folder/profile" --headless --norestore --convert-to "$3" \
    --outdir "$folder/out" "$folder/in.$2" </dev/null >&2
cat "$folder/out/in.$3"
"""
_HEAP_EXHAUSTED = 251  # status of programs compiled by GHC


def find_program(name: str) -> tuple[str, str | None]:
    """The program that a format needs.

    Args:
        name: The format, one of `PANDOC_FORMATS` or `OFFICE_TARGETS`.

    Returns:
        What it is called, and its path; None where it is not installed.
    """
    if name in OFFICE_TARGETS:
        return "LibreOffice", shutil.which("soffice") or shutil.which("libreoffice")
    spec = importlib.util.find_spec("pypandoc")
    bundled = [str(Path(folder, "files", "pandoc")) for folder in (spec and spec.submodule_search_locations) or ()]
    return "pandoc", next((path for path in bundled if os.access(path, os.X_OK)), shutil.which("pandoc"))


def convert(data: bytes, name: str) -> bytes:
    """A file in a format that can be read: HTML by pandoc, else as `OFFICE_TARGETS` says.

    Raises:
        ParseError: UNSUPPORTED_FORMAT where the program is not installed; MALFORMED, MEMORY or CRASHED where it fails.
    """
    program, path = find_program(name)
    if path is None:
        message = f"{name} is read by {program}, which is not installed"
        raise ParseError(FailureCause.UNSUPPORTED_FORMAT, message)
    command: Sequence[str]
    if name in OFFICE_TARGETS:
        command = ["/bin/sh", "-c", _OFFICE_SCRIPT, "sh", path, name, OFFICE_TARGETS[name], _PROFILE]
    else:
        # The title of an org file stands in its head, which only a whole page has.
        command = [path, "--sandbox", f"--from={name}", "--to=html", *(["--standalone"] if name == "org" else [])]
    result = run_program(command, data)
    if result.returncode == 0 and result.stdout:
        return result.stdout
    if not result.returncode:
        raise ParseError(FailureCause.NO_TEXT, f"{program} found no text in it")
    if result.returncode < 0 or result.returncode > 128:
        is_exhausted = result.returncode == _HEAP_EXHAUSTED or b"memory" in result.stderr
        cause = FailureCause.MEMORY if is_exhausted else FailureCause.CRASHED
        raise ParseError(cause, f"{program} ended with status {result.returncode}")
    lines = result.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
    reason = "" if name in OFFICE_TARGETS else f": {lines[-1]}"
    raise ParseError(FailureCause.MALFORMED, f"{program} cannot read the file; it may be damaged or encrypted{reason}")
