-- Pairs of entities that are related, strongest first, with what is said of it.
-- source: Name of one of the two entities.
-- target: Name of the other.
-- mention_count: Places that state the relationship.
-- description: How they are related; empty where only that they occur together is known.
SELECT a.name AS source, b.name AS target, r.weight, r.mention_count, r.description
FROM relationships r
JOIN entities a ON a.entity_id = r.source_id
JOIN entities b ON b.entity_id = r.target_id
ORDER BY r.weight DESC, source, target
