"""The Python data source `underlay`: options, reads, writes, and messages to the driver."""
