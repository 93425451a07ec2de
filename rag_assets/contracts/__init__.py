"""What the parts of rag_assets agree on: table schemas, model interfaces, errors, closed word lists."""
