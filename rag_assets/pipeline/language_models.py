"""The language model of a knowledge base, opened with its ledger, its budget and the answers that were paid for."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import SecretStr

from rag_assets.contracts.errors import SettingsError
from rag_assets.pipeline.home import Home

if TYPE_CHECKING:
    from rag_assets.contracts.ports import LanguageModel


def language_model(
    home: Home, run_id: str | None = None, patience_seconds: float = math.inf, *, repeats: bool = False
) -> "LanguageModel":
    """The language model that the settings name.

    Args:
        home: The knowledge base.
        run_id: Dagster run that asks; None outside a run.
        patience_seconds: How long a provider that cannot answer is tried, at most.
        repeats: Whether what is refused, empty or broken is asked again outside a run, too.

    Raises:
        SettingsError: The settings do not fit.
    """
    from rag_assets.models.accounts.budget import Budget
    from rag_assets.models.language_models import load_language_model
    from rag_assets.models.structured import NO_REPEATS

    settings, ledger = home.settings.language_model, home.ledger(run_id)
    budget = Budget(ledger, settings.budget_usd, settings.run_budget_usd)
    choice = replace(home.options.language_model, patience_seconds=patience_seconds)
    if run_id is None and not repeats:  # a person waits for the answer to a query
        choice = replace(choice, repeats=NO_REPEATS)
    return load_language_model(choice, ledger, budget)


def query_model(home: Home) -> "LanguageModel":
    """The language model that the settings name (`query_home`), with the patience of a query."""
    return language_model(home, patience_seconds=home.settings.search.model_patience_seconds)


def query_home(home: Home, name: str = "") -> Home | None:
    """The knowledge base with the language model that queries ask, without batches; None where none writes.

    Args:
        home: The knowledge base.
        name: Another model at the same provider, with `@` and an address at a server of its own, to which no key is
            sent; empty for the model that the settings name.
    """
    if home.language_model_name == "extractive":
        return None
    own = home.settings.language_model
    model, at, rest = name.partition("@http")
    changes: dict[str, object] = {"batch": "never", "model": model or own.model}
    if at and f"http{rest}" != own.base_url:
        changes |= {"base_url": f"http{rest}", "api_key": SecretStr("none")}
    return home.having("language_model", **changes)


def judge_home(home: Home) -> Home:
    """The same knowledge base with the judge of answers for its language model.

    Raises:
        SettingsError: There is neither a judge nor a language model.
    """
    own, judge_settings = home.settings.language_model, home.settings.evaluation.judge
    changes: dict[str, object] = {}
    if judge_settings.model:
        is_other = judge_settings.provider not in {"", own.provider} or judge_settings.base_url not in {
            "",
            own.base_url,
        }
        changes = {name: getattr(judge_settings, name) for name in ("model", "context_tokens")}
        if is_other:
            provider = judge_settings.provider or own.provider
            changes |= {"provider": provider, "base_url": judge_settings.base_url, "api_key": judge_settings.api_key}
        elif judge_settings.api_key is not None:
            changes["api_key"] = judge_settings.api_key
    if judge_settings.temperature is not None:
        changes["temperature"] = judge_settings.temperature
    judge = home.having("language_model", **changes)
    if judge.settings.language_model.provider == "extractive":
        raise SettingsError(
            "answers are judged by a language model, and there is none: set evaluation.judge.provider and "
            "evaluation.judge.model, or language_model.provider"
        )
    return judge


def check_language_model(home: Home) -> None:
    """Find out before work begins whether the settings fit, and there is a server where they say so.

    Raises:
        SettingsError: A budget is set, but no price is known.
        ModelError: Nobody listens at the address of the server.
        StoreError: The server of the state database cannot be used.
    """
    from rag_assets.models.language_models import check_price, check_reachable

    settings = home.settings.language_model
    if settings.budget_usd is not None or settings.run_budget_usd is not None:
        check_price(home.options.language_model)
    check_reachable(home.options.language_model)
    if home.state_file is None:
        home.state.check()


def forget_unusable_answers(home: Home, documents: Sequence[str]) -> None:
    """Remove stored answers on some documents that were of no use, so that the next run asks for them again.

    Raises:
        StoreError: The ledger cannot be read.
    """
    if home.language_model_name != "extractive" and (keys := home.ledger().unusable_keys(documents)):
        home.answers.drop(keys)
