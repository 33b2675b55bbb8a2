"""Containment: the disposable worker in which pickles are read as data, and the single-use record that allows it.

`containment` is what the rest of the engine uses. On this side of the pipe: `process` starts and ends the worker, `validation`
checks what it says. On the other side: `worker` serves requests, `lockdown` gives up every right first. Both: `frames` and
`escalation`. None of it is proof; see docs/decoding.md.
"""
