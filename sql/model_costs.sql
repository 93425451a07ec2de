-- What calls of language models cost, by run and step.
-- run_id: Dagster run that asked; null outside a run.
-- first_call: When the first answer came, UTC.
-- last_call: When the last answer came, UTC.
-- calls: Calls that were made, without stored answers.
-- stored_answers: Answers that were stored, and cost nothing.
-- not_completed: Answers that were of no use, and failures.
-- tokens_read: Tokens that the model read, those in its cache as well.
-- tokens_written: Tokens that it wrote.
-- cost_usd: Price in US dollars, of all calls together.
SELECT
    run_id,
    min(called_at) AS first_call,
    max(called_at) AS last_call,
    asset,
    step,
    provider,
    model,
    count(*) FILTER (WHERE NOT cache_hit AND outcome NOT IN ('invalid', 'repeated')) AS calls,
    count(*) FILTER (WHERE cache_hit) AS stored_answers,
    count(*) FILTER (WHERE outcome NOT IN ('completed', 'repeated')) AS not_completed,
    sum(input_tokens + cache_read_tokens + cache_write_tokens)::BIGINT AS tokens_read,
    sum(output_tokens)::BIGINT AS tokens_written,
    sum(cost_usd) AS cost_usd
FROM model_calls
GROUP BY run_id, asset, step, provider, model
ORDER BY last_call DESC, asset, step
