-- Each entity with the pages that name it, most often named first.
-- name: Its most frequent name.
-- type: Its most frequent type, as in `organization` or `identifier`.
-- document_id: Source name and path below the source's root: POSIX separators, NFC.
-- page_number: Position of the page, sheet or slide in its file, from 1.
-- mentions: Places on the page that name it.
SELECT e.entity_id, e.name, e.type, m.document_id, m.page_number, m.page_id, count(*) AS mentions
FROM entity_mentions m
LEFT JOIN entity_merges g USING (name_key)
JOIN entities e ON e.name_key = coalesce(g.merged_into, m.name_key)
GROUP BY ALL
ORDER BY e.name, mentions DESC, m.page_id
