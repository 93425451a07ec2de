-- What calls of language models cost for each document, by step; calls for several documents stand under no document.
-- document_id: Document that was read; null where there was more than one.
-- calls: Calls that were made, without stored answers.
-- tokens_read: Tokens that the model read, those in its cache as well.
-- tokens_written: Tokens that it wrote.
-- cost_usd: Price in US dollars, of all calls together.
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
