-- What calls of language models cost for each document, by step; calls for several documents stand under no document.
SELECT
    document_id,
    step,
    count(*) FILTER (WHERE NOT cache_hit AND outcome NOT IN ('invalid', 'repeated')) AS calls,
    sum(input_tokens + cache_read_tokens + cache_write_tokens)::BIGINT AS tokens_read,
    sum(output_tokens)::BIGINT AS tokens_written,
    sum(cost_usd) AS cost_usd
FROM model_calls
GROUP BY document_id, step
ORDER BY cost_usd DESC, document_id, step
