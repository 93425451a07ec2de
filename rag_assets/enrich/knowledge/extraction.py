"""Meta knowledge: which facet values and combinations get a summary, the terms that set their questions apart, and a
summary without a language model.
"""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations

from rag_assets.text.plain import one_line
from rag_assets.text.scripts import HAN, KATAKANA

METHOD = "extractive"
JOINER = " & "
MOST_FACETS = 3  # values of different facets in a combination, at most

# Compounds: ideographs and katakana in one run; hiragana carries grammar and parts them. Longer runs are no words.
_COMPOUND = f"[{KATAKANA}{HAN}]"
_TERM = re.compile(
    rf"(?<!{_COMPOUND}){_COMPOUND}{{2,16}}(?!{_COMPOUND})"
    r"|[A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+)*"
)
_LEAST_LATIN = 3
_STOP_WORDS = frozenset(
    (
        *("about", "after", "all", "also", "and", "any", "are", "because", "been", "before", "between", "but"),
        *("can", "could", "describe", "described", "did", "does", "document", "each", "for", "from", "had", "has"),
        *("have", "how", "into", "its", "many", "may", "mean", "means", "more", "most", "much", "must", "not"),
        *("one", "only", "other", "our", "question", "shall", "should", "such", "than", "that", "the", "their"),
        *("them", "then", "there", "these", "they", "this", "those", "under", "used", "using", "was", "were"),
        *("what", "when", "where", "whether", "which", "who", "why", "will", "with", "would", "you", "your", "何"),
        *("場合", "以下", "次", "上記", "下記", "文書", "資料", "質問", "回答", "参照", "可能", "必要"),
    )
)
_PRIOR_SHARE = 0.1  # of all occurrences: how much the background is trusted over a selection's own counts
_ANSWER_CHARS = 80
_SHOWN_TERMS = 10


@dataclass(frozen=True)
class QuestionAnswer:
    """A searched question with its answer."""

    qa_id: str
    document_id: str
    question: str
    answer: str
    language: str


@dataclass(frozen=True)
class Selection:
    """A facet value, or a combination of values of different facets, with its questions."""

    facets: tuple[str, ...]  # the values, each as `facet=value`, rising
    questions: tuple[QuestionAnswer, ...]  # its questions, by id

    @property
    def name(self) -> str:
        """As in `department=sales & document_type=report`."""
        return JOINER.join(self.facets)

    @property
    def document_count(self) -> int:
        """Documents that the questions are of."""
        return len({question.document_id for question in self.questions})

    @property
    def language(self) -> str:
        """The most frequent language of the questions; of equal ones the first by name."""
        counts = Counter(question.language for question in self.questions)
        return min(counts, key=lambda name: (-counts[name], name))


def select(
    questions: Mapping[str, Sequence[QuestionAnswer]],
    facets: Mapping[str, Sequence[str]],
    least_documents: int,
    least_questions: int,
    most_combinations: int,
) -> list[Selection]:
    """The facet values in use, and the combinations of two and three that are used enough.

    A combination that holds the same documents as a part of it is left out: its summary would be that part's.

    Args:
        questions: Searched questions of each document.
        facets: Values of each document, each as `facet=value`.
        least_documents: Documents with questions that a combination must have.
        least_questions: Questions that a combination must have.
        most_combinations: Combinations at most: those with the most questions.

    Returns:
        Single values by name, then combinations by falling number of questions, equal ones by name.
    """
    documents: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for document_id in questions:
        values = sorted(set(facets.get(document_id, ())))
        for combination in chain.from_iterable(combinations(values, size) for size in range(1, MOST_FACETS + 1)):
            if len({value.partition("=")[0] for value in combination}) == len(combination):
                documents[combination].add(document_id)
    counts = {
        combination: sum(len(questions[name]) for name in names) for combination, names in documents.items() if names
    }
    multiples = [
        combination
        for combination, names in documents.items()
        if len(combination) > 1
        and len(names) >= least_documents
        and counts[combination] >= least_questions
        and all(len(names) < len(documents[part]) for part in combinations(combination, len(combination) - 1))
    ]
    multiples.sort(key=lambda combination: (-counts[combination], combination))
    singles = sorted(combination for combination in documents if len(combination) == 1 and counts[combination])
    return [
        Selection(
            combination,
            tuple(
                sorted(
                    (question for name in documents[combination] for question in questions[name]), key=lambda q: q.qa_id
                )
            ),
        )
        for combination in [*singles, *multiples[:most_combinations]]
    ]


def readable_terms(text: str) -> list[str]:
    """Terms that a person can read: words and identifiers, and runs of ideographs and katakana; NFKC.

    Bigrams (`rag_assets.enrich.summaries.extraction.terms`) compare texts better, but nobody can read them.
    """
    terms: list[str] = _TERM.findall(unicodedata.normalize("NFKC", text))
    return [
        term
        for term in terms
        if term.lower() not in _STOP_WORDS
        # short Latin words tell nothing, but for abbreviations in capitals
        and (not term[0].isascii() or len(term) >= (2 if term.isupper() else _LEAST_LATIN))
    ]


@dataclass
class TermCounts:
    """How many questions each term stands in, question and answer together."""

    counts: Counter[str] = field(default_factory=Counter)  # questions by folded term
    # how often each spelling of a term occurs
    spellings: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    of_question: dict[str, frozenset[str]] = field(default_factory=dict)

    def add(self, question: QuestionAnswer) -> None:
        """Count the terms of one question, each once; one that was counted before is left out."""
        if question.qa_id in self.of_question:
            return
        terms = readable_terms(f"{question.question}\n{question.answer}")
        for term in terms:
            self.spellings[term.lower()][term] += 1
        distinct = frozenset(term.lower() for term in terms)
        self.of_question[question.qa_id] = distinct
        self.counts.update(distinct)

    def spelled(self, term: str) -> str:
        """The most frequent spelling of a term; of equal ones the first."""
        spellings = self.spellings[term]
        return min(spellings, key=lambda name: (-spellings[name], name))

    def log_odds(self, questions: Sequence[QuestionAnswer]) -> dict[str, float]:
        """How much more often each term of some questions stands in them than in the others, in standard deviations.

        Source: log-odds ratio with an informative Dirichlet prior, z-scored: B. Monroe, M. Colaresi and K. Quinn,
        "Fightin' Words: Lexical Feature Selection and Evaluation for Identifying the Content of Political Conflict",
        Political Analysis 16(4), 2008, equations 15, 16, 18 and 22. Deviations: a question counts a term once; the
        prior is the counts over all questions, scaled to a tenth of their sum.
        """
        inside = Counter(term for question in questions for term in self.of_question[question.qa_id])
        total = self.counts.total()
        n_inside = inside.total()
        n_outside, n_prior = total - n_inside, _PRIOR_SHARE * total
        scores = {}
        for term, count in inside.items():
            prior = _PRIOR_SHARE * self.counts[term]
            y_inside, y_outside = count + prior, self.counts[term] - count + prior
            odds = [
                math.log(y / max(n + n_prior - y, prior)) for y, n in ((y_inside, n_inside), (y_outside, n_outside))
            ]
            scores[term] = (odds[0] - odds[1]) / math.sqrt(1 / y_inside + 1 / y_outside)
        return scores


def key_terms(selection: Selection, terms: TermCounts, count: int) -> list[str]:
    """Terms that set the questions of a selection apart from the others, best first.

    A term that is part of a better one is left out. Terms of a single document are taken only after all others: they
    tell of the document, not of the selection. Where there are no other questions, the most frequent terms.

    Returns:
        Terms by falling log-odds; equal ones by falling frequency, then by term.
    """
    scores = terms.log_odds(selection.questions)
    documents: dict[str, set[str]] = defaultdict(set)
    frequency: Counter[str] = Counter()
    for question in selection.questions:
        for term in terms.of_question[question.qa_id]:
            documents[term].add(question.document_id)
            frequency[term] += 1
    several = selection.document_count > 1
    ranking = sorted(
        (term for term, score in scores.items() if score > -1e-9),
        key=lambda term: (
            several and len(documents[term]) < 2,
            -round(scores[term], 9),
            -frequency[term],
            term,
        ),
    )
    chosen_terms: list[str] = []
    for term in ranking:
        if len(chosen_terms) < count and not any(term in better for better in chosen_terms):
            chosen_terms.append(term)
    return [terms.spelled(term) for term in chosen_terms]


def central_questions(selection: Selection, terms: TermCounts, chars: int) -> list[QuestionAnswer]:
    """Few questions that together hold much of what sets a selection apart.

    Greedy: in each turn the question whose terms that no chosen one holds weigh most, by the square root of its length.

    Source: coverage with scaled cost: H. Lin and J. Bilmes, "A Class of Submodular Functions for Document
    Summarization", ACL 2011, section 4. Deviation: the weight of a term is its log-odds, the exponent 1/2.

    Questions and the beginnings of their answers take at most `chars` characters; the first question is chosen whatever
    its length.
    """
    weights = {term: max(0.0, score) + 1e-3 for term, score in terms.log_odds(selection.questions).items()}
    left = {question.qa_id: question for question in selection.questions}
    covered_terms: set[str] = set()
    chosen_questions: list[QuestionAnswer] = []
    while left:
        # summed in order, so that equal sets give equal sums whatever the order of hashing
        gains = {
            name: sum(weights[term] for term in sorted(terms.of_question[name] - covered_terms))
            / math.sqrt(_length(question))
            for name, question in left.items()
        }
        best = min(left, key=lambda name: (-round(gains[name], 9), name))
        if gains[best] <= 0:
            break
        question = left.pop(best)
        if chosen_questions and _length(question) > chars:
            continue
        chosen_questions.append(question)
        chars -= _length(question)
        covered_terms |= terms.of_question[best]
        left = {name: question for name, question in left.items() if _length(question) <= chars}
    return chosen_questions


def compose_summary(selection: Selection, group: str, named: Sequence[str], terms: TermCounts, chars: int) -> str:
    """A summary without a language model: how much there is, the key terms, and the central questions with answers.

    The group is what people call the facet values; characters are a rough limit.
    """
    documents, questions = selection.document_count, len(selection.questions)
    shown_terms = named[:_SHOWN_TERMS]
    if selection.language == "ja":
        head = f"{group}：文書 {documents} 件、質問 {questions} 件。"
        lines = [f"{head}主な語：{'、'.join(shown_terms)}。" if shown_terms else head, "代表的な質問："]
    else:
        head = f"{group}: {documents} documents, {questions} questions."
        lines = [f"{head} Main terms: {', '.join(shown_terms)}." if shown_terms else head, "Typical questions:"]
    samples = central_questions(selection, terms, max(0, chars - sum(map(len, lines))))
    lines += [f"- {one_line(question.question)} — {one_line(question.answer, _ANSWER_CHARS)}" for question in samples]
    return "\n".join(lines)


def _length(question: QuestionAnswer) -> int:
    return len(question.question) + min(len(question.answer), _ANSWER_CHARS) + 6
