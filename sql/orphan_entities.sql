-- Entities that are related to no other.
SELECT entity_id, name, type, mention_count, document_count
FROM entities
WHERE degree = 0
ORDER BY mention_count DESC, name
