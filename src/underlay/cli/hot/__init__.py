"""`underlay hot`: status, seal, compact, show, read and verify of hot partitions."""
