"""What a language model would cost: tokens of a document by step and US dollars, as `rag-assets plan` estimates them.

Two corpora: the design workbooks, and papers. No papers of the length in question are at hand, so that texts of exactly
that many tokens are cut from long English documents (transcripts of earnings calls); a plan for some is scaled to their
number. Nothing is called: without a key, tokens are estimated from characters. Run it with `python -m benchmarks.cost
--data FOLDER`.
"""

import argparse
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from rag_assets.contracts.generation import Usage
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.plan import Plan, make_plan
from rag_assets.pipeline.settings import load_settings
from rag_assets.text.tokens import cut_to_tokens

PAPER_TOKENS = 17_500
PAPERS = 2_000
REFERENCE_USD = 20.17  # for these papers by Claude 3 Haiku, as the source of the method states
REFERENCE_READ, REFERENCE_WRITTEN = 35_000_000, 8_000_000  # tokens, about, as it states
TRANSCRIPTS = "en_multihop/msft_earnings_calls/transcripts.zip"


def papers(data: Path, count: int) -> Iterator[str]:
    """Texts of `PAPER_TOKENS` tokens, each from documents of its own."""
    with zipfile.ZipFile(data / TRANSCRIPTS) as archive:
        names = iter(sorted(name for name in archive.namelist() if name.endswith((".txt", ".md"))))
        for _ in range(count):
            text = ""
            while len(cut_to_tokens(text, PAPER_TOKENS)) == len(text):
                name = next(names, None)
                if name is None:
                    return
                text += "\n\n" + archive.read(name).decode("utf-8")
            yield cut_to_tokens(text, PAPER_TOKENS)


def planned_home(source: Path, home: Path, model: str, taxonomy: str) -> Home:
    """A knowledge base of a folder of which nothing is indexed."""
    chosen = {"provider": "anthropic", "model": model}
    return Home(
        load_settings(home=home, sources=[f"data={source}"], language_model=chosen, enrichment={"taxonomy": taxonomy})
    )


def print_plan(title: str, found: Plan, scale: float) -> None:
    print(f"\n{title}: {found.documents} documents, {found.model}" + (f" ({found.note})" if found.note else ""))
    print(f"{'step':24}{'calls':>8}{'read / document':>18}{'written / document':>20}")
    for step in found.steps:
        read, written = (tokens / found.documents for tokens in (step.input_tokens, step.output_tokens))
        print(f"{step.step:24}{step.calls:8}{read:18,.0f}{written:20,.0f}")
    prices = {
        "plain": found.plain_usd,
        "prompt cache": found.prompt_cache_usd,
        "batches": found.batch_usd,
        "both": found.batch_prompt_cache_usd,
    }
    cells = ", ".join(f"{name} {price * scale:.2f}" for name, price in prices.items())
    print(f"US dollars for {found.documents * scale:,.0f} documents: {cells}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="Folder of the development set.")
    parser.add_argument("--model", action="append", help="A model of Anthropic; may be given more than once.")
    parser.add_argument("--papers", type=int, default=10, help="Papers that are planned for.")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        sys.exit(f"no development set at {arguments.data}: give its folder with --data")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "papers"
        folder.mkdir()
        for number, text in enumerate(papers(arguments.data, arguments.papers)):
            (folder / f"{number:04d}.txt").write_text(text, encoding="utf-8")
        for model in arguments.model or ["claude-haiku-4-5"]:
            workbooks = arguments.data / "ja_excel/docs"
            home = planned_home(workbooks, Path(temporary) / f"{model}-workbooks", model, "office")
            print_plan("workbooks", make_plan(home), 1)
            home = planned_home(folder, Path(temporary) / f"{model}-papers", model, "papers")
            found = make_plan(home)
            print_plan(f"papers of {PAPER_TOKENS:,} tokens", found, PAPERS / found.documents)
            print(f"reference for {PAPERS:,} papers: {REFERENCE_USD} US dollars by Claude 3 Haiku")
            facts = home.options.language_model.facts
            if facts is not None:
                price = facts.prices.cost_usd(Usage(REFERENCE_READ, REFERENCE_WRITTEN))
                print(f"its {REFERENCE_READ:,} tokens read and {REFERENCE_WRITTEN:,} written by {model}: {price:.2f}")


if __name__ == "__main__":
    main()
