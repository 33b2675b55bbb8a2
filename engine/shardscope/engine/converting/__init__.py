"""From a path to an output that has appeared and was verified: what is planned under which names, and carried out.

The steps themselves are those of `convert`; here stands which of them comes after which.
"""
