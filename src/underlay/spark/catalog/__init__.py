"""Tables by name in a Spark session: the views that represent them and follow the lake."""
