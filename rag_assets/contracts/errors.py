"""Every exception that rag_assets raises on purpose.

What stays out: failures of single documents, which are rows of `parse_failures`, not exceptions.

```
RagAssetsError
├── SettingsError          a setting is missing, unknown or out of range
├── SourceError            a source cannot be listed or read as a whole
├── ParseError             one document cannot be parsed (becomes a row of `parse_failures`)
├── StoreError             a stored table is missing, damaged or refused
│   ├── SchemaError        rows do not satisfy the declared schema of their table
│   └── InconsistencyError stored tables do not fit together
├── ModelError             a language model, an embedder or a reranker cannot be had or failed
│   ├── AwayError          its server does not answer at the moment
│   └── BudgetError        the next call would cost more than the budget allows
├── QueryError             a search cannot be answered as asked
└── EvaluationError        a version answers accepted questions worse than the one that readers see
```
"""

from rag_assets.contracts.causes import FailureCause


class RagAssetsError(Exception):
    """Root of the tree; its message is one clear line for a person."""


class SettingsError(RagAssetsError):
    """A setting is missing, unknown or out of range."""


class SourceError(RagAssetsError):
    """A source cannot be listed or read as a whole."""


class ParseError(RagAssetsError):
    """One document cannot be parsed.

    Args:
        cause: Why, as recorded in `parse_failures.cause`.
        message: One line that names the place and what was found there.
    """

    def __init__(self, cause: FailureCause, message: str) -> None:
        super().__init__(message)
        self.cause = cause


class StoreError(RagAssetsError):
    """A stored table is missing, damaged or refused."""


class SchemaError(StoreError):
    """Rows do not satisfy the declared schema of their table."""


class InconsistencyError(StoreError):
    """Stored tables do not fit together; nothing is published."""


class ModelError(RagAssetsError):
    """A language model, an embedder or a reranker cannot be had or failed."""


class AwayError(ModelError):
    """The server of a model does not answer at the moment; a little later it may."""


class BudgetError(ModelError):
    """The next call would cost more than the budget allows.

    Args:
        message: One line.
        may_pass: Whether calls under way may leave enough, as they rarely cost all that is reserved for them.
    """

    def __init__(self, message: str, *, may_pass: bool = False) -> None:
        super().__init__(message)
        self.may_pass = may_pass


class QueryError(RagAssetsError):
    """A search cannot be answered as asked."""


class EvaluationError(RagAssetsError):
    """A version answers accepted questions worse than the one that readers see."""
