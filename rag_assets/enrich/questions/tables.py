"""The step `synthetic_qa`: brings questions and answers in step with the passages and facets of documents.

A language model makes them as teacher and student, in three rounds for each document:

1. The teacher reads the document, as numbered passages, and asks.
2. The student, who sees the passages and the questions alone, answers and says by number which passages it used.
3. The teacher grades each pair, with the cited passages before it.

Each round asks for all windows of the document at once, so that batches of many documents take three turns. What fails
in a window costs the pairs of that window. The name of the file is not told to the model: a renamed file costs no call.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace

from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.generation import Completion, JsonValue, Request, Tag, object_schema
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import CHUNKS, DOCUMENT_FACETS, SYNTHETIC_QA
from rag_assets.enrich.documents import TITLE_TOKENS, Document, Subject, load_documents
from rag_assets.enrich.questions.extraction import (
    METHOD,
    Pair,
    Passage,
    QuestionCounts,
    extract_questions,
    length_tokens,
)
from rag_assets.enrich.summaries.boilerplate import common_lines, with_common_lines
from rag_assets.enrich.written import Progress, Records, update_documents
from rag_assets.models.dialogue import Dialogue
from rag_assets.models.prompts import SLACK, TOKENS_PER_CHAR, answer_tokens, fenced, prompted
from rag_assets.parsing.records import Record
from rag_assets.store.incremental import StepReport
from rag_assets.store.lake import Lake, shard_of
from rag_assets.text.language import detect_language
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens

_PASSAGE = ["document_id", "chunk_id", "page_id", "page_number", "block_indexes", "text", "language"]

ASK_STEP = "ask_questions"
ANSWER_STEP = "answer_question"
GRADE_STEP = "grade_answer"

_QUESTION_CHARS = 100
_ANSWER_CHARS = 300
_REASON_CHARS = 120
_CITED = 4  # passages that an answer cites, at most
_FORM_TOKENS = 40  # for the form of one item of an answer
_PROMPT_TOKENS = 1000  # for the instructions and the tags around the text
_FACET_TOKENS = 200
_WINDOW_QUESTIONS = 8  # of one window, at most
_LEAST_TOKENS = 256  # of a window, and of the passages shown with a pair to be graded
_NUMBER_TOKENS = 7  # of the number before a passage
_QUESTION_TOKENS = answer_tokens(_QUESTION_CHARS, 0)
_REPLY_TOKENS = answer_tokens(_ANSWER_CHARS, 0)


@dataclass(frozen=True)
class QuestionWindow:
    """A part of a document, and how many questions are asked about it."""

    passages: Sequence[Passage]
    count: int


@dataclass(frozen=True)
class QuestionRules:
    """How questions are made."""

    counts: QuestionCounts
    least_grade: float  # grade from which a question is searched
    read_tokens: int  # tokens of a document that one call of a language model reads, at most
    # documents from which a line that they share is no source of extractive questions; 0 for none
    boilerplate_documents: int


def wanted_questions(lake: Lake, shard: str, rules: QuestionRules, model_name: str) -> dict[str, str]:
    """What the questions of each document of a shard are to be computed from: its passages and its facet values."""
    code = code_fingerprint(f"{__name__}:update_questions")
    fingerprint = digest(code, *astuple(rules.counts), rules.least_grade, rules.read_tokens, model_name)
    facets = lake.inputs(DOCUMENT_FACETS, shard)
    return {name: digest(key, facets.get(name), fingerprint) for name, key in lake.inputs(CHUNKS, shard).items()}


def update_questions(
    lake: Lake, shards: Sequence[str], model: LanguageModel, rules: QuestionRules, progress: Progress
) -> StepReport:
    """Make the questions and answers of the documents of some shards that changed.

    Extractive questions are made anew when other lines of their document have become common; those of a language model
    are not, because a changed file should cost its own calls only.

    Raises:
        ModelError: The model cannot be used any longer; what was done before is written.
    """
    common = common_lines(lake, rules.boilerplate_documents)

    def wanted(shard: str) -> Mapping[str, str]:
        keys = wanted_questions(lake, shard, rules, model.name)
        return keys if model.generative else with_common_lines(lake, shard, common, keys)

    def begin(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[Records]]]:
        facets: dict[str, list[str]] = {}
        for row in lake.read(DOCUMENT_FACETS, [shard], ["document_id", "facet", "value"]).to_pylist():
            facets.setdefault(row["document_id"], []).append(f"{row['facet']}: {row['value']}")
        for document, passages in _load(lake, shard, documents):
            yield document.document_id, write_records(document, passages, facets.get(document.document_id, []))

    def write_records(document: Document, passages: Sequence[Passage], facets: Sequence[str]) -> Dialogue[Records]:
        """Questions by the language model; the extractive ones where it gave none that can be used."""
        if not passages:
            return {}
        pairs, method, count = list[Pair](), model.name, rules.counts.of(length_tokens(passages))
        if model.generative:
            pairs = yield from question_dialogue(
                document.subject(), passages, facets, count, rules.read_tokens, model.context_tokens
            )
        if not pairs:
            facts = (document.document_id, document.title, document.language, document.pages)
            pairs, method = extract_questions(*facts, passages, count, common), METHOD
        return {SYNTHETIC_QA.name: _records(document, pairs, rules, method)}

    return update_documents(lake, [SYNTHETIC_QA], shards, wanted, begin, model, progress)


def _load(lake: Lake, shard: str, documents: Sequence[str]) -> list[tuple[Document, list[Passage]]]:
    """Documents of a shard with their passages."""
    passages: dict[str, list[Passage]] = {}
    for row in lake.read(CHUNKS, [shard], _PASSAGE).to_pylist():
        row["block_indexes"] = tuple(row["block_indexes"] or ())
        passages.setdefault(row.pop("document_id"), []).append(Passage(**row))
    return [(document, passages.get(document.document_id, [])) for document in load_documents(lake, shard, documents)]


def _records(document: Document, pairs: Sequence[Pair], rules: QuestionRules, method: str) -> list[Record]:
    records = []
    for index, pair in enumerate(pairs):
        language = detect_language(f"{pair.question} {pair.answer}")
        records.append(
            {
                "qa_id": f"{document.document_id}#q{index}",
                "document_id": document.document_id,
                "shard": shard_of(document.document_id),
                "qa_index": index,
                "question": pair.question,
                "answer": pair.answer,
                "chunk_ids": [passage.chunk_id for passage in pair.passages],
                "page_ids": list(dict.fromkeys(passage.page_id for passage in pair.passages)),
                "grade": pair.grade,
                "indexed": pair.grade >= rules.least_grade,
                "language": document.language if language == "und" else language,
                "method": method,
            }
        )
    return records


def question_dialogue(
    subject: Subject,
    passages: Sequence[Passage],
    facets: Sequence[str],
    count: int,
    read_tokens: int,
    context_tokens: int,
) -> Dialogue[list[Pair]]:
    """Have questions asked, answered and graded.

    Facet values stand as `facet: value`; one call reads at most `read_tokens` of the document.

    Returns:
        The pairs in reading order; empty where the model gave none that can be used.
    """
    windows = split_windows(passages, count, read_tokens, context_tokens)
    completions = yield [_ask(subject, window, facets) for window in windows]
    questions = [_questions(answer, window.count) for answer, window in zip(completions, windows, strict=True)]
    left = [(window, own_questions) for window, own_questions in zip(windows, questions, strict=True) if own_questions]
    replies = yield [_answer(subject, window, own_questions) for window, own_questions in left]
    pair_lists = [
        _replies(answer, own_questions, w.passages) for answer, (w, own_questions) in zip(replies, left, strict=True)
    ]
    to_grade = [pairs for pairs in pair_lists if pairs]
    grades = yield [_grade(subject, pairs, read_tokens, context_tokens) for pairs in to_grade]
    pairs = [
        replace(pair, grade=grade)
        for answer, window_pairs in zip(grades, to_grade, strict=True)
        for pair, grade in zip(window_pairs, _grades(answer, len(window_pairs)), strict=True)
        if grade is not None
    ]
    return _in_order(pairs, passages)


def split_windows(
    passages: Sequence[Passage], count: int, read_tokens: int, context_tokens: int
) -> list[QuestionWindow]:
    """Parts of a document that one call can read, with the questions to ask about each.

    The more questions are asked of a part, the less room their answers leave for its text: parts get as many as leave
    room for the whole document, or for as much of it as can be, with as few calls as that takes. Questions are shared
    out by length (largest remainders; ties to the earlier part); parts that get none are not read, so that of a very
    long document parts all over it are.

    A passage longer than `read_tokens` is cut.
    """
    best: list[QuestionWindow] = []
    most_read = 0
    for questions in range(min(count, _WINDOW_QUESTIONS), 0, -1):
        tokens = min(read_tokens, _room(questions, context_tokens))
        if tokens < _LEAST_TOKENS and questions > 1:
            continue
        windows = _parts(passages, count, questions, max(_LEAST_TOKENS, tokens))
        read_size = sum(_size(passage) for window in windows for passage in window.passages)
        if read_size > most_read:
            best, most_read = windows, read_size
    return best


def _room(questions: int, context_tokens: int) -> int:
    """Tokens of text beside which so many questions can be asked and answered at their longest; 0 where the pairs could
    not be graded in one call.
    """
    asking = TITLE_TOKENS + _FACET_TOKENS + _answer_tokens(_QUESTION_CHARS, questions)
    answering = questions * _QUESTION_TOKENS + _answer_tokens(_ANSWER_CHARS, questions)
    room = context_tokens - _PROMPT_TOKENS
    grading = questions * (_QUESTION_TOKENS + _REPLY_TOKENS + _LEAST_TOKENS)
    gradable = grading <= _grading_room(questions, context_tokens)
    return room - max(asking, answering) if gradable else 0


def _grading_room(pairs: int, context_tokens: int) -> int:
    """Tokens of pairs and their passages that can be graded in one call."""
    return context_tokens - _PROMPT_TOKENS - _answer_tokens(_REASON_CHARS, pairs)


def _parts(passages: Sequence[Passage], count: int, questions: int, tokens: int) -> list[QuestionWindow]:
    """Parts of at most so many tokens, each with at most so many of `count` questions."""
    cut_passages = [_cut(passage, tokens) for passage in passages]
    even = sum(map(_size, cut_passages)) / -(-count // questions)
    parts: list[list[Passage]] = []
    sizes: list[int] = []
    for passage in cut_passages:
        size = _size(passage)
        if parts and sizes[-1] + size <= tokens and sum(sizes) < even * len(parts):
            parts[-1].append(passage)
            sizes[-1] += size
        else:
            parts.append([passage])
            sizes.append(size)
    shares = _shared_out(count, sizes, questions)
    return [QuestionWindow(part, n) for part, n in zip(parts, shares, strict=True) if n]


def _size(passage: Passage) -> int:
    return estimate_tokens(passage.text) + _NUMBER_TOKENS


def _cut(passage: Passage, tokens: int) -> Passage:
    if _size(passage) <= tokens:
        return passage
    return replace(passage, text=cut_to_tokens(passage.text, max(1, tokens - _NUMBER_TOKENS)))


def _shared_out(count: int, sizes: Sequence[int], most: int) -> list[int]:
    """Shares of `count` by size, none above `most`."""
    total = sum(sizes)
    if not total:
        return [0] * len(sizes)
    if count >= len(sizes):
        exact = [count * size / total for size in sizes]
        shares = [min(most, int(share)) for share in exact]
        while sum(shares) < count and min(shares) < most:
            index = max((i for i, n in enumerate(shares) if n < most), key=lambda i: exact[i] - shares[i])
            shares[index] += 1
        return shares
    positions = {(2 * turn + 1) * len(sizes) // (2 * count) for turn in range(count)}
    return [int(index in positions) for index in range(len(sizes))]


def _ask(subject: Subject, window: QuestionWindow, facets: Sequence[str]) -> Request:
    question = {
        "title": subject.fenced_title,
        "facets": cut_to_tokens("; ".join(facets), _FACET_TOKENS) or "-",
        "count": str(window.count),
        "document": fenced(_numbered(window.passages)),
    }
    item: dict[str, JsonValue] = {"type": "string", "minLength": 1, "maxLength": SLACK * _QUESTION_CHARS}
    most_tokens = _answer_tokens(_QUESTION_CHARS, window.count)
    properties = {"questions": _list(item, window.count)}
    return prompted(_tag(subject, ASK_STEP), subject.language, most_tokens, {}, question, properties)


def _answer(subject: Subject, window: QuestionWindow, questions: Sequence[str]) -> Request:
    question_list = "\n".join(f"{number}. {question}" for number, question in enumerate(questions, start=1))
    question = {"document": fenced(_numbered(window.passages)), "questions": fenced(question_list, "questions")}
    item = object_schema(
        {
            "question": {"type": "integer", "minimum": 1},
            "answer": {"type": "string", "maxLength": SLACK * _ANSWER_CHARS},
            "passages": {"type": "array", "maxItems": _CITED, "items": {"type": "integer", "minimum": 1}},
        }
    )
    count = len(questions)
    most_tokens = _answer_tokens(_ANSWER_CHARS, count)
    tag, prefix = _tag(subject, ANSWER_STEP), {"answer_chars": str(_ANSWER_CHARS)}
    return prompted(tag, subject.language, most_tokens, prefix, question, {"answers": _list(item, count)})


def _grade(subject: Subject, pairs: Sequence[Pair], read_tokens: int, context_tokens: int) -> Request:
    names = ("質問", "答え", "根拠") if subject.language == "ja" else ("Question", "Answer", "Passages")
    answers = [cut_to_tokens(pair.answer, _REPLY_TOKENS) for pair in pairs]
    heads = [
        f"[{number}]\n{names[0]}: {pair.question}\n{names[1]}: {answer}\n{names[2]}:\n"
        for number, (pair, answer) in enumerate(zip(pairs, answers, strict=True), start=1)
    ]
    room = _grading_room(len(pairs), context_tokens) - sum(map(estimate_tokens, heads))
    share = max(1, min(read_tokens, room) // len(pairs) - _NUMBER_TOKENS)
    pair_list = "\n\n".join(
        head + cut_to_tokens("\n".join(passage.text for passage in pair.passages), share)
        for head, pair in zip(heads, pairs, strict=True)
    )
    item = object_schema(
        {
            "pair": {"type": "integer", "minimum": 1},
            "reason": {"type": "string", "maxLength": SLACK * _REASON_CHARS},
            "grade": {"type": "integer", "minimum": 0, "maximum": 100},
        }
    )
    most_tokens = _answer_tokens(_REASON_CHARS, len(pairs))
    tag, prefix = _tag(subject, GRADE_STEP), {"reason_chars": str(_REASON_CHARS)}
    question, properties = {"pairs": fenced(pair_list, "pairs")}, {"grades": _list(item, len(pairs))}
    return prompted(tag, subject.language, most_tokens, prefix, question, properties)


def _tag(subject: Subject, step: str) -> Tag:
    return Tag(SYNTHETIC_QA.name, step, subject.document_id, subject.shard)


def _answer_tokens(chars: int, count: int) -> int:
    """Tokens of an answer with so many texts of a length."""
    return int(SLACK * count * (chars * TOKENS_PER_CHAR + _FORM_TOKENS))


def _list(item: Mapping[str, JsonValue], count: int) -> JsonValue:
    return {"type": "array", "maxItems": SLACK * count, "items": dict(item)}


def _numbered(passages: Sequence[Passage]) -> str:
    return "\n\n".join(f"[{number}] {passage.text}" for number, passage in enumerate(passages, start=1))


def _items(answer: Completion, name: str) -> list[JsonValue]:
    items = (answer.fields or {}).get(name)
    return items if isinstance(items, list) else []


def _questions(answer: Completion, count: int) -> list[str]:
    """Questions that were asked, without those too long to be answered beside the text."""
    texts = [one_line(item) for item in _items(answer, "questions")]
    return [text for text in texts if text and estimate_tokens(text) <= _QUESTION_TOKENS - _NUMBER_TOKENS][:count]


def _replies(answer: Completion, questions: Sequence[str], passages: Sequence[Passage]) -> list[Pair]:
    """Answers that cite a passage that was shown, not graded yet; the others are dropped."""
    pairs = []
    for index, item in _by_number(_items(answer, "answers"), "question", len(questions)):
        numbers = item["passages"] if isinstance(item["passages"], list) else []
        valid = sorted({n for n in numbers if isinstance(n, int) and 1 <= n <= len(passages)})
        if (text := one_line(item["answer"])) and valid:
            pairs.append(Pair(questions[index], text, tuple(passages[n - 1] for n in valid), 0.0))
    return pairs


def _grades(answer: Completion, count: int) -> list[float | None]:
    """The grade of each pair; None for pairs without one."""
    grades: list[float | None] = [None] * count
    for index, item in _by_number(_items(answer, "grades"), "pair", count):
        grade = item["grade"]
        grades[index] = float(grade) if isinstance(grade, int | float) else None
    return grades


def _by_number(items: Sequence[JsonValue], name: str, count: int) -> list[tuple[int, dict[str, JsonValue]]]:
    """Items with the index that their number stands for; by their position where a number stands twice.

    Numbers that were not given are left out.
    """
    objects = [item for item in items if isinstance(item, dict)][:count]
    numbers = [item[name] for item in objects]
    if len(set(map(str, numbers))) < len(numbers):
        return list(enumerate(objects))
    return [(n - 1, item) for n, item in zip(numbers, objects, strict=True) if isinstance(n, int) and 1 <= n <= count]


def _in_order(pairs: Sequence[Pair], passages: Sequence[Passage]) -> list[Pair]:
    """Pairs in the order of their passages; of a question that was asked twice, the answer with the best grade."""
    best: dict[str, Pair] = {}
    for pair in pairs:
        key = "".join(pair.question.lower().split())
        if key not in best or pair.grade > best[key].grade:
            best[key] = pair
    position = {passage.chunk_id: index for index, passage in enumerate(passages)}
    return sorted(best.values(), key=lambda pair: (position[pair.passages[0].chunk_id], pair.question))
