"""The command line: every command is one module, and imports what it needs only once it runs.

Data goes to standard output, everything else to standard error (`output`); what goes wrong becomes one sentence and an
exit code in one place (`failure`).
"""
