-- Lengths of the file and page summaries in characters, by kind, method and language.
-- kind: `file` or `page`: what is summarised.
-- method: What wrote the summaries: `extractive` or the name of the language model.
-- language: Their language, ISO 639-1 (`ja`, `en`).
-- summary_count: Summaries.
-- shortest_chars: Characters of the shortest.
-- mean_chars: Characters, on average.
-- median_chars: Characters of the median.
-- longest_chars: Characters of the longest.
SELECT
    kind,
    method,
    language,
    count(*) AS summary_count,
    min(length_chars) AS shortest_chars,
    round(avg(length_chars), 1) AS mean_chars,
    median(length_chars) AS median_chars,
    max(length_chars) AS longest_chars
FROM (
    SELECT 'file' AS kind, method, language, length_chars FROM file_summaries
    UNION ALL
    SELECT 'page' AS kind, method, language, length_chars FROM page_summaries
)
GROUP BY kind, method, language
ORDER BY kind, method, language;
