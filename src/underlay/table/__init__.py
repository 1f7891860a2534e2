"""Tables of a lake: catalog, versions, snapshots, transactions and the commit."""
