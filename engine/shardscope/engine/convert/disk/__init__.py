"""What lies beside a target while an output is made: locks, markers, journals, files of a known size, and the calls that make them."""
