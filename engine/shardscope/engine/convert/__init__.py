"""From a catalogue of tensors to files that were not there before: plan, admit, stage, verify, promote.

Everything that writes an output lives here. Nothing half-done is ever visible: files are made in a marked staging folder
beside the target, and one rename makes them appear.
"""
