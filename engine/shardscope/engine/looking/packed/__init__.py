"""The numbers that packed weights stand for: a window of them at a time, out of the packed tensor and its companions."""
