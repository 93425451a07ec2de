-- Each page with its document, its summary and its text.
-- document_id: Source name and path below the source's root: POSIX separators, NFC.
-- title: Title of the document.
-- page_number: Position of the page, sheet or slide in its file, from 1.
-- kind: `sheet`, `page`, `slide`, `section` or `body`.
-- language: Main language, ISO 639-1 (`ja`, `en`); `und` where it cannot be told.
-- length_chars: Characters of `text`.
-- summary: Summary of the page; null without one.
-- text: Text of the page in reading order, as displayed.
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
