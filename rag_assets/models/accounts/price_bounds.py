"""The most that a call may cost, known before it is made.

What stays out: what may be spent (`budget`), and what a call did cost (`catalogue.Prices`).
"""

from functools import lru_cache

from rag_assets.contracts.generation import Request
from rag_assets.models.catalogue import ModelFacts
from rag_assets.text.tokens import estimate_tokens

_MILLION = 1_000_000
_GENEROUS = 1.25  # on top of an estimate that is rather too high already
_MESSAGE_TOKENS = 16  # what a provider puts around a message
_SCHEMA_TOKENS = 512  # what a provider says about a schema


def upper_price_usd(request: Request, facts: ModelFacts, *, batch: bool = False) -> float:
    """The most that a call may cost: tokens read estimated generously, tokens written as many as are allowed.

    Args:
        request: The call.
        facts: Of the model.
        batch: Whether it is made in a batch.
    """
    prices = facts.prices
    if not (prices.input or prices.output or prices.cache_write):
        return 0.0
    texts = [request.system, *(message.text for message in request.messages)]
    tokens = _prefix_tokens(request.prefix) + sum(map(estimate_tokens, texts))
    tokens += _MESSAGE_TOKENS * (1 + len(texts))
    if request.schema is not None:
        tokens += _prefix_tokens(request.schema) + _SCHEMA_TOKENS
    read = min(tokens * _GENEROUS, facts.context_tokens)
    price = read * max(prices.input, prices.cache_write, prices.cache_read)
    price += facts.written_tokens(request.max_tokens) * prices.output
    if 0 < prices.long_prompt_tokens < read:
        price *= max(1.0, prices.long_prompt_factor)
    return price / _MILLION * (prices.batch_factor if batch else 1.0)


@lru_cache(maxsize=64)
def _prefix_tokens(text: str) -> int:
    return estimate_tokens(text)
