-- Community reports, highest rating first.
-- title: Short title with names from the community.
-- level: 0 for the coarsest level.
-- method: What wrote it: `extractive` or the name of the language model.
-- community_id: Identifies the community.
SELECT r.rating, r.title, r.level, c.size, r.summary, r.rating_explanation, r.method, r.community_id
FROM community_reports r
JOIN communities c USING (community_id)
ORDER BY r.rating DESC, c.size DESC, r.community_id
