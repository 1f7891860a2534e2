"""Files checked byte by byte: their footers and rows against what the index says of them."""
