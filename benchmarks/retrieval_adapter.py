"""How the adapter of the embedder (`rag_assets/models/embedding/retrieval.npz`) was trained, and what it gives.

`gather` reads questions with the passages that answer them, tokenizes them and writes one file:

- question sets in the format of SQuAD (`--squad NAME=FILE`, `--cross NAME=QUESTIONS,CONTEXTS` for a translation of the
  questions): their paragraphs, each below the title of its article;
- indexed collections with their question sets (`--questions NAME=HOME,FILE,…`): all passages, as they are embedded.

`train` learns low-rank changes of multilingual-e5-small: a softmax over the passage that answers a question, those that
the embedder took for near, and those of the other questions of the step. Vectors of passages are held near those that
they had, so that what is compared with them elsewhere stays as it is, and so are those of questions of SQuAD, of which
some are learned. The collections are learned all together, and each half of them is left out in turn; for those left
out it prints how often one of the first five passages answers, and the mean reciprocal rank, by meaning alone. It needs
torch, takes some five minutes on one H200 and days on two processors.

    python -m benchmarks.retrieval_adapter gather --squad jaquad=train.json … --questions own=HOME,own.jsonl pack.npz
    python -m benchmarks.retrieval_adapter train pack.npz rag_assets/models/embedding/retrieval.npz
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.low_rank import LowRankModel, run_training
from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.models.embedding.e5_weights import write_adapter

RATE, EPOCHS, BATCH = 4e-4, 3.0, 96
TEMPERATURE = 0.02
NEAR, TAKEN = 40, 6  # passages near a question that do not answer it, and how many of these a step takes
HELD = 5.0  # weight of how far vectors of passages move, 1 - cosine
HELD_QUESTIONS = 3.0  # and those of questions of SQuAD
LEARNED = 2000  # of the questions of SQuAD
DROPOUT = 0.1
FOLDS = 2
_PASSAGE_TOKENS, _QUESTION_TOKENS = 506, 200
_READ_TOKENS = 120_000  # at once, without learning


@dataclass
class Pack:
    """Passages and questions, in sets of which each is searched by itself.

    Attributes:
        sets: Names; those of collections begin with `own`.
        passages: Set and text.
        questions: Set, text and the places of the passages that answer it.
    """

    sets: list[str] = field(default_factory=list)
    passages: list[tuple[int, str]] = field(default_factory=list)
    questions: list[tuple[int, str, list[int]]] = field(default_factory=list)

    def save(self, path: Path, cache_folder: Path) -> None:
        """Tokenize all texts and write them."""
        from rag_assets.models.embedding.embedders import E5Embedder

        tokens = E5Embedder(cache_folder)
        arrays: dict[str, NDArray[np.generic]] = {
            "sets": np.array(self.sets),
            "set_of_passage": np.array([row[0] for row in self.passages], np.int32),
            "set_of_question": np.array([row[0] for row in self.questions], np.int32),
        }
        lists = {
            "passages": [ids[:_PASSAGE_TOKENS] for ids in tokens.content_ids([row[1] for row in self.passages])],
            "questions": [ids[:_QUESTION_TOKENS] for ids in tokens.content_ids([row[1] for row in self.questions])],
            "answering": [row[2] for row in self.questions],
            "prefixes": tokens.content_ids([f"{kind}:" for kind in (EmbeddingKind.QUERY, EmbeddingKind.PASSAGE)]),
        }
        for name, rows in lists.items():
            arrays[name] = np.array([each for row in rows for each in row], np.int32)
            arrays[f"{name}.offsets"] = np.cumsum([0, *map(len, rows)]).astype(np.int64)
        np.savez_compressed(path, allow_pickle=False, **arrays)


def squad(pack: Pack, name: str, questions: Path, contexts: Path) -> None:
    """Questions of a file in the format of SQuAD, answered by the paragraphs of another or the same."""
    asked, read = (json.loads(path.read_text(encoding="utf-8"))["data"] for path in (questions, contexts))
    pack.sets.append(name)
    number = len(pack.sets) - 1
    for article, other in zip(read, asked, strict=True):
        title = str(article.get("title", "")).replace("_", " ")
        for paragraph, translated in zip(article["paragraphs"], other["paragraphs"], strict=True):
            place = len(pack.passages)
            pack.passages.append((number, f"{title}\n{paragraph['context']}"))
            pack.questions += [
                (number, each["question"], [place]) for each in translated["qas"] if not each.get("is_impossible")
            ]


def collection(pack: Pack, name: str, home: Path, files: Sequence[Path]) -> None:
    """Questions of an indexed collection whose evidence is a passage."""
    from rag_assets.contracts.tables import CHUNKS
    from rag_assets.evaluation.evidence import Corpus, Level
    from rag_assets.evaluation.questions import read_questions
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.opening import published_snapshot
    from rag_assets.pipeline.settings import load_settings
    from rag_assets.query.stored import StoredTables

    opened = Home(load_settings(home=home))
    stored = StoredTables(opened.lake, published_snapshot(opened).tables)
    pack.sets.append(f"own {name}")
    number = len(pack.sets) - 1
    places: dict[str, int] = {}
    for row in stored.read(CHUNKS, ("chunk_id", "context", "text")).to_pylist():
        places[row["chunk_id"]] = len(pack.passages)
        pack.passages.append((number, f"{row['context']}\n{row['text']}"))
    corpus = Corpus(stored)
    for path in files:
        questions = [each for each in read_questions(path) if each.searched and not each.history]
        targets = corpus.targets(questions)
        for each in questions:
            ids = targets[each.id].ids(Level.PASSAGE)
            if answering := sorted(places[key] for key in ids if key in places):
                pack.questions.append((number, each.text, answering))


class _Texts:
    """Token ids of texts, as the model reads them."""

    def __init__(self, stored: Any, name: str, prefix: NDArray[np.int32]) -> None:
        self._ids, self._offsets, self._prefix = stored[name], stored[f"{name}.offsets"], prefix

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def sequences(self, places: Sequence[int]) -> list[NDArray[np.int64]]:
        """What the model reads of texts."""
        from rag_assets.models.embedding.embedders import BEGIN_ID, END_ID

        parts = (self._ids[self._offsets[place] : self._offsets[place + 1]] for place in places)
        return [np.array([BEGIN_ID, *self._prefix, *part, END_ID], np.int64) for part in parts]

    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each."""
        lengths: NDArray[np.int64] = np.diff(self._offsets) + len(self._prefix) + 2
        return lengths


class Trainer:
    """Trains the embedder on a pack.

    Args:
        path: What `gather` wrote.
        limit: Questions of each set that are used at most; 0 for all.
    """

    def __init__(self, path: Path, limit: int = 0) -> None:
        self.model = LowRankModel()
        with path.open("rb") as file, np.load(file) as opened:
            stored = {name: opened[name] for name in opened.files}
        query, passage = np.split(stored["prefixes"], stored["prefixes.offsets"][1:-1])
        self._passages, self._questions = _Texts(stored, "passages", passage), _Texts(stored, "questions", query)
        self.sets: list[str] = stored["sets"].tolist()
        self._set_of = stored["set_of_question"]
        self._bounds = np.searchsorted(stored["set_of_passage"], np.arange(len(self.sets) + 1))
        offsets = stored["answering.offsets"]
        self._answering = np.split(stored["answering"], offsets[1:-1])
        self.by_set = {number: np.flatnonzero(self._set_of == number).tolist() for number in range(len(self.sets))}
        self.by_set = {number: questions[: limit or None] for number, questions in self.by_set.items()}
        if not any(map(self.is_own, filter(self.by_set.get, self.by_set))):
            raise SystemExit(f"{path}: holds no questions of collections")
        self.first = self.model.state()
        self._before, self._asked_before = self._embedded(self._passages), self._embedded(self._questions)
        self._near = {question: self._nearest(question) for each in self.by_set.values() for question in each}

    def fit(self, questions: Sequence[int]) -> None:
        """Learn from questions, from the beginning on."""
        self.model.restore(self.first)
        self.model.fit(questions, RATE, EPOCHS, BATCH, self._loss)

    def found(self, number: int) -> tuple[float, float]:
        """Share of a set's questions that one of the first five passages answers, and the mean reciprocal rank, however
        late; nan for a set without questions.
        """
        questions, (start, end) = self.by_set[number], self._bounds[number : number + 2].tolist()
        if not questions:
            return float("nan"), float("nan")
        vectors = self._embedded(self._passages, start, end)
        asked = self._embedded(self._questions, questions[0], questions[-1] + 1)
        ranks = []
        for question in questions:
            scores = vectors @ asked[question - questions[0]]
            best = scores[self.model.torch.from_numpy(self._answering[question] - start).to(scores.device)].max()
            ranks.append(int((scores > best).sum()) + 1)
        return float(np.mean([rank <= 5 for rank in ranks])), float(np.mean([1 / rank for rank in ranks]))

    def _loss(self, taken: list[int]) -> Any:
        torch, functional, chance = self.model.torch, self.model.torch.nn.functional, self.model.chance
        answers = [int(chance.choice(self._answering[question])) for question in taken]
        near = [chance.permutation(self._near[question])[:TAKEN].tolist() for question in taken]
        passages = list(dict.fromkeys([*answers, *(place for places in near for place in places)]))
        asked = self.model.means(self._questions.sequences(taken), DROPOUT, parts=1)
        read = self.model.means(self._passages.sequences(passages), DROPOUT)
        asked, read = (functional.normalize(each, dim=-1) for each in (asked, read))
        scores = asked @ read.T / TEMPERATURE
        column = {place: at for at, place in enumerate(passages)}
        for row, (question, answer) in enumerate(zip(taken, answers, strict=True)):
            others = [column[place] for place in self._answering[question].tolist() if place in column]
            scores[row, [at for at in others if at != column[answer]]] = -torch.inf
        wanted = torch.tensor([column[answer] for answer in answers], device=scores.device)
        moved = 1 - (read * self._before[torch.tensor(passages, device=scores.device)]).sum(-1)
        loss = functional.cross_entropy(scores, wanted) + HELD * moved.mean()
        public = [row for row, question in enumerate(taken) if not self.is_own(int(self._set_of[question]))]
        if public:
            before = self._asked_before[torch.tensor([taken[row] for row in public], device=scores.device)]
            loss = loss + HELD_QUESTIONS * (1 - (asked[public] * before).sum(-1)).sum() / len(taken)
        return loss

    def is_own(self, number: int) -> bool:
        """Whether a set is a collection."""
        return self.sets[number].startswith("own ")

    def _embedded(self, texts: _Texts, start: int = 0, end: int | None = None) -> Any:
        """Vectors of texts, of unit length, as the model has learned so far."""
        torch, lengths = self.model.torch, texts.lengths()
        order = sorted(range(start, len(texts) if end is None else end), key=lambda place: -int(lengths[place]))
        read, at = [], 0
        with torch.no_grad():
            while at < len(order):
                part = order[at : at + max(1, _READ_TOKENS // int(lengths[order[at]]))]
                read.append(self.model.means(texts.sequences(part), parts=1))
                at += len(part)
            places = torch.from_numpy(np.argsort(np.array(order, np.int64), kind="stable")).to(self.model.device)
            return torch.nn.functional.normalize(torch.cat(read)[places], dim=-1)

    def _nearest(self, question: int) -> NDArray[np.int64]:
        """Passages near a question, before learning, that do not answer it."""
        torch = self.model.torch
        start, end = self._bounds[int(self._set_of[question]) :][:2].tolist()
        scores = self._before[start:end] @ self._asked_before[question]
        scores[torch.from_numpy(self._answering[question] - start).to(scores.device)] = -2.0
        count = min(NEAR, end - start - len(self._answering[question]))
        places: NDArray[np.int64] = scores.topk(count).indices.cpu().numpy() + start
        return places


def train(pack: Path, output: Path, limit: int) -> None:
    """Train on a pack, print what is found in collections left out, and write the adapter.

    Args:
        pack: What `gather` wrote.
        output: The adapter.
        limit: Questions of each set that are used at most; 0 for all.
    """
    began = time.monotonic()
    trainer = Trainer(pack, limit)
    own = [number for number in trainer.by_set if trainer.is_own(number)]
    public = [question for number in trainer.by_set if number not in own for question in trainer.by_set[number]]
    public = trainer.model.chance.permutation(np.array(public, np.int64))[:LEARNED].tolist()
    before = {number: trainer.found(number) for number in own}
    for left_out in (*(own[at::FOLDS] for at in range(min(FOLDS, len(own)))), []):
        learned = [question for number in own if number not in left_out for question in trainer.by_set[number]]
        trainer.fit([*learned, *public])
        for number in left_out:
            figures = (*before[number], *trainer.found(number))
            print(
                f"{trainer.sets[number]}, left out: among five {figures[0]:.3f} before, {figures[2]:.3f};"
                f" reciprocal rank {figures[1]:.3f} before, {figures[3]:.3f}; {time.monotonic() - began:.0f} s",
                flush=True,
            )
    write_adapter(output, trainer.model.adapter())


def gather(arguments: argparse.Namespace) -> None:
    """Write a pack of what the arguments name."""
    pack = Pack()
    for name, path in (each.split("=", 1) for each in arguments.squad):
        squad(pack, name, Path(path), Path(path))
    for name, paths in (each.split("=", 1) for each in arguments.cross):
        questions, contexts = map(Path, paths.split(","))
        squad(pack, name, questions, contexts)
    for name, paths in (each.split("=", 1) for each in arguments.questions):
        home, *files = map(Path, paths.split(","))
        collection(pack, name, home, files)
    pack.save(arguments.pack, arguments.models)
    print(f"{len(pack.questions)} questions, {len(pack.passages)} passages")


if __name__ == "__main__":
    run_training(__doc__ or "", gather, train)
