"""Opening what a knowledge base has published: for the servers and commands, and from Python in one call.

What stays out: following versions that are published later (`rag_assets.query.published.Published`), and indexing.
"""

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rag_assets.contracts.errors import ModelError, QueryError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    import pyarrow as pa

    from rag_assets.contracts.ports import LanguageModel, Reranker, Rewriter
    from rag_assets.pipeline.home import Home
    from rag_assets.query import HydeOptions, KnowledgeBase
    from rag_assets.query.published import OpenVersion, Published
    from rag_assets.query.search.ranking_weights import Ranking
    from rag_assets.query.search.trained_rewriting import TrainedModel
    from rag_assets.store.snapshots import Snapshot

LEARNED = {  # what a collection learns for its searches, by what `rag-assets train` calls it
    "ranking": "ranking_weights",
    "query-map": "query_map",
    "rewriter": "rewriter_model",
}
_LEARNED = tuple(LEARNED.values())
_log = logging.getLogger(__name__)


def open_version(
    home: "str | Path | None" = None,
    *,
    hyde: "HydeOptions | None" = None,
    rewriter: "Rewriter | None" = None,
    **settings: Any,
) -> "OpenVersion":
    """Open the published version: its `base` searches and answers, its `contents` read documents, pages and the graph.

    Args:
        home: Folder of the knowledge base; None for the one that the settings name (`RAG_HOME`, else `.rag`).
        hyde: How mode `hyde` searches, with models of any kind; None for the settings.
        rewriter: Rewrites in mode `rewrite`; None for the trained model that is in force, the language model, or rules
            without either.
        settings: Top-level settings that take precedence over environment and file.

    Raises:
        SettingsError: A setting is unknown or out of range.
        QueryError: Nothing is published there yet, or it was indexed with another embedder than the settings name.
        StoreError: A published file is gone.
    """
    from pathlib import Path

    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.settings import load_settings
    from rag_assets.query.contents.contents import Contents
    from rag_assets.query.published import OpenVersion

    opened_home = Home(load_settings(**({} if home is None else {"home": Path(home)}), **settings))
    snapshot = published_snapshot(opened_home)
    base = knowledge_base(opened_home, snapshot, hyde=hyde, rewriter=rewriter)
    return OpenVersion(snapshot, base, Contents(opened_home.lake, snapshot, partial(_calls, opened_home)))


def open_knowledge_base(
    home: "str | Path | None" = None,
    *,
    hyde: "HydeOptions | None" = None,
    rewriter: "Rewriter | None" = None,
    **settings: Any,
) -> "KnowledgeBase":
    """Open the published version, for searching and asking.

    Raises:
        SettingsError: As for `open_version`, like the other errors.
    """
    return open_version(home, hyde=hyde, rewriter=rewriter, **settings).base


def readable_snapshot(home: "Home") -> "Snapshot | None":
    """The version that readers see, or one that is intact where that is damaged, which is said; None for none.

    Raises:
        StoreError: Versions were published, and none can be read any more.
    """
    from rag_assets.store.damage import intact_version

    snapshot, problem = intact_version(home.snapshots)
    if problem and snapshot is None:
        raise StoreError(f"{home.path}: {problem}")
    if problem:
        _log.warning("%s", problem)
    return snapshot


def published_snapshot(home: "Home") -> "Snapshot":
    """The version that readers see, see `readable_snapshot`.

    Raises:
        QueryError: Nothing is published yet.
        StoreError: Versions were published, and none can be read any more.
    """
    if (snapshot := readable_snapshot(home)) is None:
        raise QueryError(f"nothing is indexed in {home.path}; run `rag-assets index FOLDER` first")
    return snapshot


def knowledge_base(
    home: "Home",
    snapshot: "Snapshot | None" = None,
    *,
    hyde: "HydeOptions | None" = None,
    rewriter: "Rewriter | None" = None,
    open_model: "Callable[[Home], LanguageModel] | None" = None,
) -> "KnowledgeBase":
    """The published version, for searching.

    Args:
        home: The knowledge base on disk.
        snapshot: A version; None for the one that readers see.
        hyde: As for `open_version`.
        rewriter: As for `open_version`.
        open_model: Opens the language model that the settings name; None for that of queries.

    Raises:
        QueryError: Nothing is published yet, or it was indexed with another embedder.
    """
    from rag_assets.pipeline.language_models import query_home, query_model
    from rag_assets.query import KnowledgeBase, QueryModels, QueryOptions, StoredTables

    snapshot = snapshot or published_snapshot(home)
    if snapshot.embedder != home.embedder.name:
        raise QueryError(
            f"{home.path} was indexed with {snapshot.embedder}, the settings name {home.embedder.name}; "
            "run `rag-assets index`"
        )
    opens = open_model or query_model
    model_home = query_home(home)
    options = QueryOptions(
        home.options.search_defaults,
        home.options.reader,
        home.options.global_answers,
        hyde or _hyde_options(home, opens),
        home.settings.reranking.candidates,
        learned_ranking(home, snapshot),
    )
    language = opens(model_home) if model_home is not None else None
    models = QueryModels(language, rewriter, reranker(home), trained_model(home, snapshot), home.answer_scorer)
    stored = StoredTables(home.lake, snapshot.tables)
    return KnowledgeBase(home.vectors, home.embedder, snapshot.vector_tables, options, stored, models)


def learned_ranking(home: "Home", snapshot: "Snapshot") -> "Ranking":
    """How mode `weighted` ranks in a version: as learned, where that is in force and can be used; else as shipped."""
    ranking, problems = usable_ranking(home, snapshot)
    for name, problem in problems.items():
        _log.warning("version %d is searched as shipped, without its %s: %s", snapshot.number, name, problem)
    return ranking


def usable_ranking(home: "Home", snapshot: "Snapshot") -> "tuple[Ranking, dict[str, str]]":
    """How mode `weighted` ranks in a version, and why what is in force is not used, by its name."""
    from rag_assets.query.search.ranking_weights import MAP_ASSET, WEIGHTS_ASSET, Ranking, read_ranking
    from rag_assets.training.adoption import in_force

    ranking, problems = Ranking(), {}
    try:
        folder = in_force(home.path, snapshot, WEIGHTS_ASSET)
        ranking = read_ranking(folder, None, snapshot.embedder, reranker_name(home))
    except (ModelError, StoreError) as error:
        problems[WEIGHTS_ASSET] = str(error)
    try:
        folder = in_force(home.path, snapshot, MAP_ASSET)
        ranking = replace(ranking, query_map=read_ranking(None, folder, snapshot.embedder).query_map)
        if folder is not None and ranking.query_map is None:
            problems[MAP_ASSET] = "it was learned with another embedder"
    except StoreError as error:
        problems[MAP_ASSET] = str(error)
    return ranking, problems


def published(home: "Home") -> "Published":
    """The published versions of a knowledge base, each opened when it is asked for."""
    from rag_assets.query.published import Published

    return Published(home.lake, home.snapshots, partial(knowledge_base, home), read_calls=partial(_calls, home))


def reranker(home: "Home") -> "Reranker | None":
    """The reranker that the settings name, if any."""
    if not home.settings.reranking.model:
        return None
    from rag_assets.models.embedding.sentence_transformers import CrossEncoderReranker

    return CrossEncoderReranker(home.settings.reranking.model, home.settings.embedding.threads)


def reranker_name(home: "Home") -> str:
    """Name of the reranker that the settings name; empty for none."""
    model = reranker(home)
    return model.name if model is not None else ""


def trained_model(home: "Home", snapshot: "Snapshot") -> "TrainedModel | None":
    """The trained rewriter that is in force in a version, if any; one that is damaged is logged and left out."""
    try:
        return _read_trained_model(home, snapshot)
    except StoreError as error:
        _log.warning("version %d is searched without its trained rewriter: %s", snapshot.number, error)
        return None


def frozen_rewriter(base: "KnowledgeBase") -> "Rewriter":
    """What rewrites without training: the language model, or rules without one."""
    from rag_assets.query.search.rewriting import ModelRewriter
    from rag_assets.query.search.rewriting_rules import RuleRewriter

    return ModelRewriter(base.writer) if base.writer is not None else RuleRewriter()


def _read_trained_model(home: "Home", snapshot: "Snapshot") -> "TrainedModel | None":
    from rag_assets.query.search.trained_rewriting import TrainedModel
    from rag_assets.training.adoption import REWRITER_MODEL, in_force

    folder = in_force(home.path, snapshot, REWRITER_MODEL)
    return None if folder is None else TrainedModel.load(folder, home.settings.embedding.threads)


def learning_problems(home: "Home", snapshot: "Snapshot", names: "Collection[str]" = _LEARNED) -> dict[str, str]:
    """Why what was learned and is in force in a version is not used, by its name.

    Args:
        home: The knowledge base.
        snapshot: The version.
        names: What is looked at; a rewriter is loaded for that.
    """
    from rag_assets.training.adoption import REWRITER_MODEL

    problems = {name: problem for name, problem in usable_ranking(home, snapshot)[1].items() if name in names}
    if REWRITER_MODEL not in names:
        return problems
    try:
        model = _read_trained_model(home, snapshot)
        if model is not None and (problem := model.problem()):
            problems[REWRITER_MODEL] = problem
    except StoreError as error:
        problems[REWRITER_MODEL] = str(error)
    return problems


def usable_place(home: "Home", snapshot: "Snapshot", name: str) -> str:
    """Place of what is in force in a version under a name, for a candidate to be compared with; empty for none.

    Raises:
        QueryError: It cannot be used here, so that nothing can be compared with it.
    """
    if (problem := learning_problems(home, snapshot, (name,)).get(name)) is not None:
        key = next(key for key, asset in LEARNED.items() if asset == name)
        raise QueryError(
            f"{name}: what is in force cannot be used: {problem}; mend it, or run `rag-assets train undo {key}`"
        )
    return "".join(snapshot.learned.get(name, ())[-1:])


def _calls(home: "Home", columns: "Sequence[str]") -> "pa.Table":
    """Columns of all calls of language models so far, with `call_id`."""
    return home.ledger().rows(columns=columns)


def _hyde_options(home: "Home", opens: "Callable[[Home], LanguageModel]") -> "HydeOptions":
    from rag_assets.pipeline.language_models import query_home
    from rag_assets.query import Fusion, Generator, HydeOptions

    settings = home.settings.search
    models = [opens(model_home) for name in settings.hyde_models if (model_home := query_home(home, name)) is not None]
    generators = tuple(Generator(model, seed) for model in models for seed in range(settings.hyde_passages))
    return HydeOptions(generators, settings.hyde_passages, Fusion(settings.hyde_fusion), rrf_k=settings.hyde_rrf_k)
