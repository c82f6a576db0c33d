"""Recorded results of other simulators and of a real kernel, and ours beside them."""
