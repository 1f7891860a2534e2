"""One field of many Thrift structs as one numpy array."""
