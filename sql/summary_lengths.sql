-- Lengths of the file and page summaries in characters, by kind, method and language.
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
