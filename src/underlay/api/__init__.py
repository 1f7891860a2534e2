"""The public Python API: lakes, tables, scans and plans. Each method calls the layer that does the work."""
