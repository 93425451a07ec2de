"""Tests that need a Japanese font on the machine: PDF files name fonts that they do not hold."""

import pytest

from rag_assets.parsing.pdf.fonts import has_japanese_font

needs_japanese_font = pytest.mark.skipif(
    not has_japanese_font(), reason="no Japanese font is installed: apt-get install fonts-ipafont-gothic"
)
