"""Walk through chart specifications."""


def units(spec, data=None):
    """Yield (encoding, field names of its data) of every single view of a specification."""
    data = spec.get("data", {}).get("name", data)
    if "encoding" in spec:
        yield spec["encoding"], data
    for key in ("layer", "concat", "vconcat", "hconcat"):
        for child in spec.get(key, []):
            yield from units(child, data)
