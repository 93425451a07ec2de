-- Questions counted by facet value: documents, questions, those that are searched, their grades, and documents without
-- any that is searched.
-- facet: Facet of the taxonomy, as in `document_type`.
-- value: Value of the facet, as in `api_specification`.
-- document_count: Documents that have the value.
-- question_count: Questions on these documents.
-- indexed_count: Those that are searched.
-- questions_per_document: Questions for each document, on average.
-- mean_grade: Mean grade of the questions; null where none has one.
-- documents_without_questions: Documents without a question that is searched.
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
