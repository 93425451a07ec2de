-- Questions whose value differs between two runs of one question set in one mode, one run after the other.
-- mode: How it was searched: the mode that `auto` chose.
-- version_before: Version that the run before asked.
-- level: `document`, `page`, `passage`, `answer`, a judge as `grading`, or `cost` (time, tokens, dollars).
-- value_before: Value of the measure in the run before.
-- value: Value of the measure.
-- run_id: Identifies the run.
-- run_id_before: Identifies the run before.
WITH ordered AS (
    SELECT run_id, system, question_set, mode, version, evaluated_at,
        lag(run_id) OVER w AS run_id_before, lag(system) OVER w AS system_before, lag(version) OVER w AS version_before
    FROM evaluation_runs
    WHERE version IS NOT NULL  -- nobody saw one that the gate held back
    WINDOW w AS (PARTITION BY question_set, mode ORDER BY evaluated_at, run_id)
)
SELECT
    o.evaluated_at,
    o.question_set,
    o.mode,
    o.version_before,
    o.version,
    v.question_id,
    v.level,
    v.measure,
    b.value AS value_before,
    v.value,
    o.run_id,
    o.run_id_before
FROM ordered AS o
JOIN evaluation_values AS v ON v.run_id = o.run_id AND v.system = o.system
JOIN evaluation_values AS b
    ON b.run_id = o.run_id_before AND b.system = o.system_before
    AND b.question_id = v.question_id AND b.level = v.level AND b.measure = v.measure
WHERE v.value <> b.value
ORDER BY o.evaluated_at DESC, v.value - b.value, v.question_id, v.level, v.measure
