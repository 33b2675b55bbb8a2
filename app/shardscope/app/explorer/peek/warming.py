"""What the first look at numbers would wait for, loaded beforehand: 400 ms of imports, a second on a busy machine."""


def warm() -> None:
    """Load what reads and draws numbers. A thread does it while a person looks through the list of tensors."""
    from shardscope.app.explorer.peek import heat_sight, opening, sight, words  # noqa: F401
    from shardscope.engine.convert.proofs import comparing  # noqa: F401
    from shardscope.engine.diffing import placing  # noqa: F401
    from shardscope.engine.looking import heat, places, statistics  # noqa: F401
    from shardscope.engine.peeking import gathering, peek, tensormaps, unpacking, windows  # noqa: F401
