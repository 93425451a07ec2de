"""The Dagster instance of a knowledge base: its folder, and the UI on it.

Starts Dagster's programs; imports none of it.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.exposure import check_exposure
from rag_assets.pipeline.home import Home

_STOP_SECONDS = 20  # the web server gives requests under way 5 seconds, then ends its code server


def dagster_folder(home: Home) -> Path:
    """Folder of the Dagster instance: `DAGSTER_HOME` where set, else `dagster_home` inside the knowledge base."""
    return Path(os.environ.get("DAGSTER_HOME") or home.path / "dagster_home").absolute()


def dagster_home(home: Home) -> Path:
    """Folder of the Dagster instance; it and its `dagster.yaml` are made where missing."""
    folder = dagster_folder(home)
    configuration = folder / "dagster.yaml"
    if not configuration.exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_shipped("dagster.yaml", "dagster_home/dagster.yaml"), configuration)
    return folder


def workspace_file() -> Path:
    """The file that names the code location: sensors and schedules are switched on by its name."""
    return _shipped("workspace.yaml", "workspace.yaml")


def instance_environment(home: Home) -> dict[str, str]:
    """Environment under which Dagster's programs work on a knowledge base."""
    return {
        **os.environ,
        "DAGSTER_HOME": str(dagster_home(home)),
        "RAG_HOME": str(home.path),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
    }


def serve_ui(home: Home, host: str, port: int, interrupted: Callable[[], None]) -> int:
    """Run the web server and the daemon until one of them ends or the process is interrupted.

    Both have a session of their own: Control-C in a terminal would reach everything that they started, too, each in the
    middle of its work.

    Args:
        home: The knowledge base.
        host: Interface of the web server.
        port: Its port.
        interrupted: Called when the process was interrupted, before the programs are ended, which takes seconds.

    Returns:
        Exit status of the program that ended first; 0 after an interrupt.

    Raises:
        SettingsError: The address can be reached from elsewhere, and there is no token.
        StoreError: The instance lies in a home that may only be read.
        OSError: It cannot be had.
    """
    from rag_assets.serve.api.server import open_socket

    token = home.settings.serve.token
    check_exposure(host, token.get_secret_value() if token else None)
    environment = instance_environment(home)
    if (folder := dagster_folder(home)).is_relative_to(home.path) and not os.access(folder, os.W_OK):
        raise StoreError(f"{folder} cannot be written: the UI records runs there")
    with open_socket(host, port) as listener:
        web = [sys.executable, "-m", "rag_assets.defs.web_server", str(listener.fileno())]
        daemon = [sys.executable, "-m", "dagster._daemon", "run", "-w", str(workspace_file())]
        _create_storage(environment)
        signals, interrupt = (signal.SIGTERM, signal.SIGHUP), signal.default_int_handler
        previous = {number: signal.signal(number, interrupt) for number in signals}
        programs: list[subprocess.Popen[bytes]] = []
        try:
            for command, files in ((web, [listener.fileno()]), (daemon, [])):
                program = subprocess.Popen(command, env=environment, pass_fds=files, start_new_session=True)  # noqa: S603 - fixed programs
                programs.append(program)
            while all(program.poll() is None for program in programs):
                time.sleep(0.2)
            return next(program.returncode for program in programs if program.poll() is not None)
        except KeyboardInterrupt:
            interrupted()
            return 0
        finally:
            _stop(programs)
            for number, handler in previous.items():
                signal.signal(number, handler)


def _stop(programs: "list[subprocess.Popen[bytes]]") -> None:
    """End programs in order, whoever presses Control-C again meanwhile."""
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for program in programs:
            program.send_signal(signal.SIGINT)
        for program in programs:
            try:
                program.wait(timeout=_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                program.kill()
    finally:
        signal.signal(signal.SIGINT, previous)


def _create_storage(environment: dict[str, str]) -> None:
    """Make the databases of a new instance: two programs that make them at once get in each other's way."""
    if not (Path(environment["DAGSTER_HOME"]) / "history").exists():
        command = [sys.executable, "-m", "dagster", "instance", "info"]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - fixed program


def _shipped(name: str, place: str) -> Path:
    """A file that lies in the package where that is installed, and at its place in the repository else."""
    package = Path(__file__).parents[1]
    return package / name if (package / name).exists() else package.parent / place
