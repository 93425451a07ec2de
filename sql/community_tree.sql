-- Each community with its parent and the path of ids above it, coarsest level first.
-- path: Ids of the communities from level 0 down to this one, itself last.
-- level: 0 for the coarsest level.
-- community_id: Identifies the community.
-- title: Title of its report; null without one.
WITH RECURSIVE tree AS (
    SELECT community_id, level, parent_id, size, is_leaf, [community_id] AS path
    FROM communities
    WHERE parent_id IS NULL
    UNION ALL
    SELECT c.community_id, c.level, c.parent_id, c.size, c.is_leaf, list_append(t.path, c.community_id)
    FROM communities c
    JOIN tree t ON c.parent_id = t.community_id
)
SELECT t.path, t.level, t.community_id, t.parent_id, t.size, t.is_leaf, r.title
FROM tree t
LEFT JOIN community_reports r USING (community_id)
ORDER BY t.path
