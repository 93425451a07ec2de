"""What the HTTP API is told: who may ask, how much, and how searches go that say nothing of it."""

from dataclasses import dataclass, field

from rag_assets.query.ask.report_levels import LevelChoice
from rag_assets.serve.sql.reader import SqlLimits


@dataclass(frozen=True)
class ApiOptions:
    """Limits and defaults.

    Attributes:
        token: What callers must show; None where the address can only be reached from this machine.
        loopback: Whether the address can only be reached from this machine.
        hosts: Names, beside those of this machine, under which the server may be called; of a server that others can
            reach, any name where there is none.
        requests_per_minute: Requests of one client a minute; 0 for no limit.
        request_bytes: Size of a request's body.
        search_workers: Searches that run at once.
        ask_workers: Answers that are written at once.
        sql_workers: SQL queries that run at once.
        waiting: Requests of each kind that may wait for their turn; more are sent away.
        sql: What one SQL query may take.
        mode: Mode of a search that names none.
        ask_mode: Mode of a question that names none.
        k: Results of a search that names no number.
        levels: Which community reports are read where a search names none.
    """

    token: str | None = None
    loopback: bool = True
    hosts: tuple[str, ...] = ()
    requests_per_minute: int = 600
    request_bytes: int = 1 << 20
    search_workers: int = 2
    ask_workers: int = 4
    sql_workers: int = 2
    waiting: int = 64
    sql: SqlLimits = field(default_factory=SqlLimits)
    mode: str = "auto"
    ask_mode: str = "auto"
    k: int = 10
    levels: LevelChoice = field(default_factory=lambda: LevelChoice(1, dynamic=False))
