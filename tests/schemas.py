"""Documents held against their schemas. A schema is looked at once: that takes twenty times as long as a document does."""

from functools import cache

import jsonschema  # type: ignore[import-untyped]

from shardscope.engine.model.documents import json_schema


def validate(document: object, name: str) -> None:
    """Hold a document against the schema `name`; raises `jsonschema.ValidationError`."""
    _validator(name).validate(document)


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)
