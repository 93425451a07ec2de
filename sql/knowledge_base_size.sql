-- Size of the knowledge base: one row for each source and one for all of them.
-- source_name: Name of the source; `(all)` in the row for all of them.
-- document_count: Documents.
-- failed_count: Documents of which nothing was read.
-- chunk_count: Passages.
-- length_tokens: Tokens of the passages.
-- length_chars: Characters of text in all pages.
-- size_bytes: Size of the files in bytes.
-- last_modified_at: Last change of any of the files, UTC.
SELECT
    coalesce(d.source_name, '(all)') AS source_name,
    count(*) AS document_count,
    count(*) FILTER (WHERE d.status = 'failed') AS failed_count,
    sum(d.page_count)::BIGINT AS page_count,
    sum(coalesce(c.chunk_count, 0))::BIGINT AS chunk_count,
    sum(coalesce(c.length_tokens, 0))::BIGINT AS length_tokens,
    sum(d.length_chars)::BIGINT AS length_chars,
    sum(d.size_bytes)::BIGINT AS size_bytes,
    max(d.modified_at) AS last_modified_at
FROM documents AS d
LEFT JOIN (
    SELECT document_id, count(*) AS chunk_count, sum(length_tokens) AS length_tokens FROM chunks GROUP BY document_id
) AS c USING (document_id)
GROUP BY GROUPING SETS ((d.source_name), ())
ORDER BY (d.source_name IS NULL), d.source_name;
