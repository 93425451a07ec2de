-- Values of single questions in evaluations: a row for each run, system, question, level and measure.
SELECT run_id, system, question_id, type, language, score.level, score.measure, score.value
FROM (SELECT run_id, system, question_id, type, language, unnest(scores) AS score FROM evaluation_results)
ORDER BY run_id DESC, system, question_id, score.level, score.measure
