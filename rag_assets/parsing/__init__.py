"""From files to pages, blocks and passages."""
