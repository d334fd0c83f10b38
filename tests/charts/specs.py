"""Walk through chart specifications, and hold them to their data."""


def units(spec, data=None):
    """Yield (encoding, field names of its data) of every single view of a specification."""
    data = spec.get("data", {}).get("name", data)
    if "encoding" in spec:
        yield spec["encoding"], data
    for key in ("layer", "concat", "vconcat", "hconcat"):
        for child in spec.get(key, []):
            yield from units(child, data)


def axis_titles(spec, *, may_be_empty=False):
    """Return the titles of the quantitative channels, in order; every field that is drawn must be in its data.

    ``may_be_empty``: views without rows have no fields to look for.
    """
    titles = []
    for encoding, data in units(spec):
        rows = spec["datasets"][data]
        fields = set().union(*(row.keys() for row in rows))
        for channel, one_or_more in encoding.items():
            several = isinstance(one_or_more, list)  # lines of a tooltip
            for definition in one_or_more if several else [one_or_more]:
                if "field" in definition and (rows or not may_be_empty):
                    assert definition["field"] in fields, (channel, definition)
                if not several and definition.get("type") == "quantitative":
                    titles += [definition["title"]] if definition.get("title") else []
    return titles
