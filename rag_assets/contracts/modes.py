"""Names of the modes of search and of what is learned for them: which there are, and how modes are put together.

```
mode ::= "auto" | modes | preparing "+" modes        preparing ::= "hyde" | "rewrite"
modes ::= name ("," name)*                           the rankings of several are fused
```

Baselines (`BASELINE_RETRIEVERS`, `BASELINE_PREPARING`) stand in the same places of a name.
"""

VECTOR_MODE = "vector"
FULLTEXT_MODE = "fulltext"
HYBRID_MODE = "hybrid"
WEIGHTED_MODE = "weighted"
TWO_STEP_MODE = "two_step"
GRAPH_LOCAL_MODE = "graph_local"
TEXT_MAP_REDUCE_MODE = "text_map_reduce"
GRAPH_GLOBAL_MODE = "graph_global"
META_KNOWLEDGE_MODE = "meta_knowledge"
HYDE_MODE = "hyde"
REWRITE_MODE = "rewrite"
AUTO_MODE = "auto"
QUESTIONS_MODE = "questions"
SUMMARY_MODE = "summary"
SUMMARY_TEXT_MODE = "summary_text"
AUGMENT_MODE = "augment"
PLAN_MODE = "plan"

RETRIEVERS = (
    *(VECTOR_MODE, FULLTEXT_MODE, HYBRID_MODE, WEIGHTED_MODE, TWO_STEP_MODE),
    *(GRAPH_LOCAL_MODE, TEXT_MAP_REDUCE_MODE, GRAPH_GLOBAL_MODE, META_KNOWLEDGE_MODE),
)
PREPARING_MODES = {HYDE_MODE: VECTOR_MODE, REWRITE_MODE: HYBRID_MODE}  # with the mode that follows where none is named
MODES = (*RETRIEVERS, *PREPARING_MODES, AUTO_MODE)

# What the sources compare with, searched as they describe it: for measuring, not offered as a choice.
BASELINE_RETRIEVERS = (QUESTIONS_MODE, SUMMARY_MODE, SUMMARY_TEXT_MODE)
BASELINE_PREPARING = {AUGMENT_MODE: VECTOR_MODE, PLAN_MODE: QUESTIONS_MODE}

LEARNED = {  # what a collection learns for its searches, by what `rag-assets train` calls it
    "ranking": "ranking_weights",
    "query-map": "query_map",
    "rewriter": "rewriter_model",
}
