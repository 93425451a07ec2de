"""The Dagster instance of a knowledge base: its folder, and the UI on it.

Starts Dagster's programs; imports none of it.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from rag_assets.home import Home

_MODULE = "rag_assets.definitions"


def dagster_home(home: Home) -> Path:
    """Folder of the Dagster instance: `DAGSTER_HOME` where set, else `dagster_home` inside the knowledge base.

    The folder and its `dagster.yaml` are made where missing.
    """
    folder = Path(os.environ.get("DAGSTER_HOME") or home.path / "dagster_home").absolute()
    configuration = folder / "dagster.yaml"
    if not configuration.exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_default_configuration(), configuration)
    return folder


def instance_environment(home: Home) -> dict[str, str]:
    """Environment under which Dagster's programs work on a knowledge base."""
    return {
        **os.environ,
        "DAGSTER_HOME": str(dagster_home(home)),
        "RAG_HOME": str(home.path),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
    }


def serve_ui(home: Home, host: str, port: int) -> int:
    """Run the web server and the daemon until one of them ends or the process is interrupted.

    Returns:
        Exit status of the program that ended first; 0 after an interrupt.
    """
    environment = instance_environment(home)
    commands = (
        [sys.executable, "-m", "dagster_webserver", "-m", _MODULE, "-h", host, "-p", str(port)],
        [sys.executable, "-m", "dagster._daemon", "run", "-m", _MODULE],
    )
    _create_storage(environment)
    programs = [subprocess.Popen(command, env=environment) for command in commands]  # noqa: S603 - fixed programs
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        while all(program.poll() is None for program in programs):
            time.sleep(0.2)
        return next(program.returncode for program in programs if program.poll() is not None)
    except KeyboardInterrupt:
        return 0
    finally:
        signal.signal(signal.SIGTERM, previous)
        for program in programs:
            program.send_signal(signal.SIGINT)
        for program in programs:
            try:
                program.wait(timeout=10)
            except subprocess.TimeoutExpired:
                program.kill()


def _create_storage(environment: dict[str, str]) -> None:
    """Make the databases of a new instance: two programs that make them at once get in each other's way."""
    if not (Path(environment["DAGSTER_HOME"]) / "history").exists():
        command = [sys.executable, "-m", "dagster", "instance", "info"]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - fixed program


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _default_configuration() -> Path:
    package = Path(__file__).parent
    installed = package / "dagster.yaml"
    return installed if installed.exists() else package.parent / "dagster_home" / "dagster.yaml"
