-- Each page with its document, its summary and its text.
SELECT
    p.page_id,
    p.document_id,
    d.title,
    p.page_number,
    p.page_name,
    p.kind,
    p.hidden,
    p.language,
    p.length_chars,
    s.text AS summary,
    p.text
FROM pages AS p
JOIN documents AS d USING (document_id)
LEFT JOIN page_summaries AS s USING (page_id)
ORDER BY p.document_id, p.page_number;
