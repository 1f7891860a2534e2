"""Tables by name in a Spark session: the views that stand for them and follow the lake."""
