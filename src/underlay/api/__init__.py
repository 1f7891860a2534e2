"""What users call: lakes, tables and scans, each method one line over the layer that does the work."""
