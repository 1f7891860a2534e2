"""`_txn`: the commit of a hot table. Two slots, of which the version's parity names the one that counts."""
