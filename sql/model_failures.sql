-- Calls of language models that gave no usable answer, newest first, with the cause.
SELECT called_at, run_id, asset, step, document_id, provider, model, outcome, error, batch_id
FROM model_calls
WHERE outcome NOT IN ('completed', 'repeated') AND NOT cache_hit
ORDER BY called_at DESC, call_id
