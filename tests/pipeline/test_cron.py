"""Cron expressions: those that Dagster takes, told without it."""

import dagster as dg
import pytest

from rag_assets.defs.sensors import build_schedule
from rag_assets.pipeline.cron import check_cron


@pytest.mark.parametrize(
    "expression",
    [
        "0 * * * *",
        "*/5,59 0-23/2 1,L Jan-mar MON-FRI",
        "5/10 22-2 28-l 12 7",
        "00 08 ? * mon#2,L5",
        "0 0 * * mon-fri#1",
        " 0  0 29 2 * ",
        "@Daily",
    ],
)
def test_an_expression_that_dagster_takes(expression: str) -> None:
    check_cron(expression)
    build_schedule(expression)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("every", "expected the fields minute, hour, day, month, weekday, as in "),
        ("", "expected the fields"),
        ("@reboot", "expected the fields"),
        ("0 0 0 * * *", "expected the fields"),
        ("60 * * * *", "'60' is no minute"),
        ("* 24 * * *", "'24' is no hour"),
        ("* * 0 * *", "'0' is no day"),
        ("* * l/2 * *", "'l/2' is no day"),
        ("* * * 13 *", "'13' is no month"),
        ("* * * mon *", "'mon' is no month"),
        ("* * * * 8", "'8' is no weekday"),
        ("* * * * mon#2,tue", "'mon#2,tue' is no weekday"),
        ("*/0 * * * *", "'\\*/0' is no minute"),
        ("1-2-3 * * * *", "'1-2-3' is no minute"),
        ("1, * * * *", "'1,' is no minute"),
        ("0 0 30 feb *", "there is no such day"),
    ],
)
def test_an_expression_that_dagster_refuses(expression: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        check_cron(expression)
    with pytest.raises(dg.DagsterInvalidDefinitionError):
        build_schedule(expression)
