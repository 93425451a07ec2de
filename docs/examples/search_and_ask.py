"""Searches a knowledge base, asks it, and reads what it cites.

Index the sample folder first, then run the script on its home:

    rag-assets --home .rag/demo index sample=docs/sample
    python docs/examples/search_and_ask.py .rag/demo
"""

import sys

from rag_assets import open_version
from rag_assets.query import parse_filters

version = open_version(sys.argv[1] if len(sys.argv) > 1 else None)
base, contents = version.base, version.contents

print("# Search")
result = base.search("顧客登録で顧客名が重複したときのエラーは", mode="hybrid", k=3)
for hit in result.hits:
    print(f"{hit.rank}. {hit.citation}  ({hit.score:.2f})")

print("\n# Search within the Excel files of one folder")
filters = parse_filters(["format=xlsx", "folder=sample/設計書"])
for hit in base.search("顧客", mode="fulltext", k=3, filters=filters).hits:
    print(f"{hit.rank}. {hit.citation}")

print("\n# Ask")
answer = base.ask("What is the return policy?", k=3)
print(answer.text)
for source in answer.cited():
    print(f"[{source.number}] {source.citation}")

print("\n# What the question went through")
for step in answer.trace.steps:
    print(f"{step.operation}: {step.candidates}")

print("\n# Read the page of the best hit")
best = result.hits[0].citation
page = contents.page(best.document_id, best.page_number, focus=best.cell_range)
assert page is not None
print(f"{page.title}, page {page.page_number} of {page.page_count}: {page.page_name}")
for block in page.blocks:
    if block.kind == "heading":
        print(f"  {block.cell_range}  {block.text}")

print("\n# Documents")
for document in contents.documents(limit=3).items:
    print(f"{document.document_id}: {document.page_count} pages")
