-- Each document with its state: what it is, whether it was parsed, how much of it was not read, what it gave, and why it failed if it did.
-- document_id: Source name and path below the source's root: POSIX separators, NFC.
-- status: `parsed`; `failed`: nothing was read of it; `unreadable`: its file can no longer be read, and its rows are those of before.
-- failure_cause: Cause of its first failure; null without one.
-- failure_message: What its first failure says; null without one.
-- failure_count: Failures, of the file and of its pages.
-- title: Title stated in the file, else the file name without extension.
-- language: Main language, ISO 639-1 (`ja`, `en`); `und` where it cannot be told.
-- unread_share: Share of its pages of which nothing was read, 0 to 1.
-- chunk_count: Passages.
-- length_chars: Characters of text in all its pages.
SELECT
    d.document_id,
    d.source_name,
    d.folder,
    d.file_name,
    d.format,
    d.status,
    f.cause AS failure_cause,
    f.message AS failure_message,
    coalesce(f.failure_count, 0) AS failure_count,
    d.title,
    d.language,
    d.page_count,
    d.unread_page_count,
    d.partly_read_page_count,
    round(least(1, d.unread_page_count / greatest(1, d.page_count)), 4) AS unread_share,
    coalesce(c.chunk_count, 0) AS chunk_count,
    d.length_chars,
    d.size_bytes,
    d.modified_at
FROM documents AS d
LEFT JOIN (
    SELECT document_id, count(*) AS chunk_count FROM chunks GROUP BY document_id
) AS c USING (document_id)
LEFT JOIN (
    SELECT
        document_id,
        count(*) AS failure_count,
        arg_min(cause, failure_index) AS cause,
        arg_min(message, failure_index) AS message
    FROM parse_failures
    GROUP BY document_id
) AS f USING (document_id)
ORDER BY d.document_id;
