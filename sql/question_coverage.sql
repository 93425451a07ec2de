-- Pages and passages that no searched question rests on: one row for each page with text, the least covered first.
-- document_id: Source name and path below the source's root: POSIX separators, NFC.
-- title: Title of the document.
-- page_number: Position of the page, sheet or slide in its file, from 1.
-- length_chars: Characters of the page.
-- question_count: Searched questions that rest on the page.
-- chunk_count: Passages of the page.
-- uncovered_chunk_count: Passages that no searched question rests on.
-- uncovered_chunk_ids: These passages.
SELECT
    p.page_id,
    p.document_id,
    d.title,
    p.page_number,
    p.page_name,
    p.role,
    p.length_chars,
    count(DISTINCT q.qa_id) AS question_count,
    count(DISTINCT c.chunk_id) AS chunk_count,
    count(DISTINCT c.chunk_id) FILTER (WHERE q.qa_id IS NULL) AS uncovered_chunk_count,
    list_sort(list(DISTINCT c.chunk_id) FILTER (WHERE q.qa_id IS NULL)) AS uncovered_chunk_ids
FROM pages AS p
JOIN documents AS d USING (document_id)
JOIN chunks AS c USING (page_id)
LEFT JOIN (
    SELECT qa_id, unnest(chunk_ids) AS chunk_id FROM synthetic_qa WHERE indexed
) AS q USING (chunk_id)
GROUP BY ALL
ORDER BY question_count, uncovered_chunk_count DESC, p.document_id, p.page_number;
