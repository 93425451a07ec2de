"""The calls that batches take: making, listing, looking at, reading and ending one.

What stays out: when they are made (`batches`), and what is remembered of them (`batch_store`).
Source: https://platform.claude.com/docs/en/build-with-claude/batch-processing
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Request
from rag_assets.models.accounts.database import StateDatabase
from rag_assets.models.anthropic.batch_store import BatchEntry, BatchStore, OpenBatch
from rag_assets.models.anthropic.messages import call_errors, message_params, open_client, sampling, version_headers
from rag_assets.models.catalogue import ModelFacts
from rag_assets.models.providers import CallError

if TYPE_CHECKING:
    from anthropic import Anthropic
    from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
    from anthropic.types.messages.batch_create_params import Request as BatchRequest

# A batch of 256 MB may take the provider longer than a single answer.
_TRANSFER_SECONDS = 600.0
_PAGE = 100
_CLOCK_SKEW = timedelta(hours=1)


class BatchClient:
    """Batches of one model at the provider; every method raises `CallError`.

    Args:
        client: Client that makes one attempt a call.
        model: Name of the model at the provider.
        facts: Its limits.

    Attributes:
        reached: Whether the provider has answered a call.
    """

    def __init__(self, client: "Anthropic", model: str, facts: ModelFacts) -> None:
        self._client = client
        self._model = model
        self._facts = facts
        self.reached = False

    @contextmanager
    def _calling(self, transfer_seconds: float | None = None) -> Iterator[None]:
        with call_errors(self._client, transfer_seconds=transfer_seconds):
            yield
        self.reached = True

    @property
    def base_url(self) -> str:
        return str(self._client.base_url).rstrip("/")

    @property
    def api_key(self) -> str | None:
        return self._client.api_key

    def params(self, request: Request) -> dict[str, object]:
        """What a batch holds for a request."""
        return {**message_params(self._model, self._facts, request), **sampling(request)}

    def create(self, batch: OpenBatch, entries: Sequence[BatchEntry]) -> str:
        """Make a batch.

        Returns:
            The provider's id of it.
        """
        requests = [
            {"custom_id": custom_id, "params": self.params(entry.request)}
            for custom_id, entry in zip(batch.attempts, entries, strict=True)
        ]
        temperature = any(entry.request.temperature is not None for entry in entries)
        with self._calling(_TRANSFER_SECONDS):
            made = self._client.messages.batches.create(
                requests=cast("list[BatchRequest]", requests),
                extra_headers=version_headers(temperature=temperature),
                timeout=_TRANSFER_SECONDS,
            )
        return made.id

    def like(self, batch: OpenBatch) -> "Iterator[MessageBatch]":
        """Batches that were made since one was written down, and have as many requests."""
        since = datetime.fromtimestamp(batch.created_at, UTC) - _CLOCK_SKEW
        with self._calling():
            for listed in self._client.messages.batches.list(limit=_PAGE):  # the newest come first
                if listed.created_at < since:
                    return
                counts = listed.request_counts
                total = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
                if total == batch.requests:
                    yield listed

    def has_ended(self, batch_id: str) -> bool:
        """Whether the results of a batch can be read.

        Raises:
            ModelError: The account has no such batch.
        """
        from anthropic import NotFoundError

        with self._calling():
            try:
                return self._client.messages.batches.retrieve(batch_id).processing_status == "ended"
            except NotFoundError:
                raise ModelError(
                    f"anthropic: batch {batch_id} is not known to this account; "
                    f"`rag-assets batches --cancel {batch_id}` forgets it"
                ) from None

    def results(self, batch_id: str) -> "Generator[MessageBatchIndividualResponse, None, None]":
        """Results of a batch that has ended, in any order, as they are read from the connection."""
        with (
            call_errors(self._client, transfer_seconds=_TRANSFER_SECONDS),
            closing(self._client.messages.batches.results(batch_id, timeout=_TRANSFER_SECONDS)) as results,
        ):
            yield from results

    def nonce(self, batch_id: str) -> str:
        """What the custom ids of a batch that has ended begin with; of others' batches anything."""
        with closing(self.results(batch_id)) as results:
            first = next(results, None)
        return first.custom_id.partition("-")[0] if first else ""


def open_batches(database: StateDatabase) -> list[OpenBatch]:
    """Batches whose results have not been read to the end, oldest first.

    Args:
        database: See `BatchSettings`.
    """
    return BatchStore(database).open_batches()


def cancel_batch(
    database: StateDatabase, batch_id: str, *, api_key: str | None, base_url: str, timeout_seconds: float
) -> str:
    """End a batch. Answers that it has by then are paid for, and kept when the same work is started again.

    Args:
        database: See `BatchSettings`.
        batch_id: The provider's id, or the nonce of a batch of which no id is known; that one is only forgotten.
        api_key: See `open_client`.
        base_url: See `open_client`.
        timeout_seconds: Seconds that the call may take.

    Returns:
        The state of the batch: `canceling`, `ended`, or `forgotten` where the provider does not know it.

    Raises:
        ModelError: The provider cannot be reached, or refuses.
        SettingsError: There is no key.
    """
    from anthropic import NotFoundError

    store = BatchStore(database)
    nonces = {found.batch_id or found.nonce: found.nonce for found in store.open_batches()}
    if nonces.get(batch_id) == batch_id:
        store.remove(batch_id)
        return "forgotten"
    client = open_client(api_key, base_url, timeout_seconds)
    try:
        with call_errors(client):
            try:
                state: str = client.messages.batches.cancel(batch_id).processing_status
            except NotFoundError:
                if batch_id not in nonces:
                    raise
                store.remove(nonces[batch_id])
                state = "forgotten"
    except CallError as error:
        raise ModelError(f"{error}; batch {batch_id} was not ended") from None
    return state
