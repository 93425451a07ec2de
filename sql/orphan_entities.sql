-- Entities that are related to no other.
-- name: Its most frequent name.
-- type: Its most frequent type, as in `organization` or `identifier`.
-- mention_count: Places that name it.
-- document_count: Documents that name it.
SELECT entity_id, name, type, mention_count, document_count
FROM entities
WHERE degree = 0
ORDER BY mention_count DESC, name
