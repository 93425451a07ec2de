-- Failures counted by cause and format, with an example.
-- document_count: Documents with such a failure.
-- failure_count: Failures.
-- example_document_id: One of the documents.
-- example_message: What a failure of that document says.
SELECT
    f.cause,
    d.format,
    count(DISTINCT f.document_id) AS document_count,
    count(*) AS failure_count,
    min(f.document_id) AS example_document_id,
    arg_min(f.message, f.document_id) AS example_message
FROM parse_failures AS f
JOIN documents AS d USING (document_id)
GROUP BY f.cause, d.format
ORDER BY document_count DESC, f.cause, d.format;
