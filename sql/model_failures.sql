-- Calls of language models that gave no usable answer, newest first, with the cause.
-- run_id: Dagster run that asked; null outside a run.
-- document_id: Document that was read; null where there was more than one.
-- outcome: `truncated`, `refused`, `empty`, `failed`, `unknown` (its process ended before the answer came) or `invalid` (the answer broke its schema).
SELECT called_at, run_id, asset, step, document_id, provider, model, outcome, error, batch_id
FROM model_calls
WHERE outcome NOT IN ('completed', 'repeated') AND NOT cache_hit
ORDER BY called_at DESC, call_id
