-- Community reports, highest rating first.
SELECT r.rating, r.title, r.level, c.size, r.summary, r.rating_explanation, r.method, r.community_id
FROM community_reports r
JOIN communities c USING (community_id)
ORDER BY r.rating DESC, c.size DESC, r.community_id
