-- Main figures of evaluations with their 95 % intervals, the latest run first.
-- mode: How it was searched: the mode that `auto` chose.
-- question_count: Questions that were asked.
-- level: `document`, `page`, `passage`, `answer`, or a judge as `grading`.
-- judged_count: Questions that the mean rests on.
-- run_id: Identifies the run: when it ended, UTC, and a random part.
SELECT
    r.evaluated_at,
    r.version,
    r.mode,
    r.made_by,
    r.question_set,
    r.question_count,
    s.level,
    s.measure,
    s.mean,
    s.low,
    s.high,
    s.question_count AS judged_count,
    r.choosing_count,
    r.run_id,
    r.system
FROM evaluation_runs AS r
JOIN evaluation_scores AS s USING (run_id, system)
WHERE s.dimension = 'all' AND s.level <> 'cost'
ORDER BY r.evaluated_at DESC, r.run_id, r.system, s.level, s.measure
