"""Parses line protocol, as InfluxDB and QuestDB write it, to Arrow rows by measurement; errors name line and column."""
