"""The Python data source `underlay`: its options, reads and writes, and how the driver hears of them."""
