"""The Python data source `underlay`: options, reads and writes, and how workers report commits to the driver."""
