-- Values of single questions in evaluations: a row for each run, system, question, level and measure.
-- run_id: Identifies the run: when it ended, UTC, and a random part.
-- type: Kind of question, in the words of the set.
-- language: Its language.
-- level: `document`, `page`, `passage`, `answer`, a judge as `grading`, or `cost` (time, tokens, dollars).
-- value: Value of the measure for the question.
SELECT v.run_id, v.system, v.question_id, v.type, v.language, v.score.level, v.score.measure, v.score.value
FROM (SELECT run_id, system, question_id, type, language, unnest(scores) AS score FROM evaluation_results) AS v
JOIN evaluation_runs AS r ON r.run_id = v.run_id AND r.system = v.system
ORDER BY r.evaluated_at DESC, v.run_id, v.system, v.question_id, v.score.level, v.score.measure
