"""Other table formats: their tables come in without a copy, and ours go out as theirs."""
