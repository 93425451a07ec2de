-- Questions counted by facet value: documents, questions, those that are searched, their grades, and documents without
-- any that is searched.
SELECT
    f.facet,
    f.value,
    count(DISTINCT f.document_id) AS document_count,
    count(q.qa_id) AS question_count,
    count(q.qa_id) FILTER (WHERE q.indexed) AS indexed_count,
    round(count(q.qa_id) / count(DISTINCT f.document_id), 2) AS questions_per_document,
    round(avg(q.grade), 1) AS mean_grade,
    count(DISTINCT f.document_id) - count(DISTINCT f.document_id) FILTER (WHERE q.indexed) AS documents_without_questions
FROM document_facets AS f
LEFT JOIN synthetic_qa AS q USING (document_id)
GROUP BY f.facet, f.value
ORDER BY f.facet, question_count DESC, f.value;
