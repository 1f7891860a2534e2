"""Tables of a lake: the catalog, versions, snapshots, transactions and the commit."""
