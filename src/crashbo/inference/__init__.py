"""Inference in plain torch: tilted moments, expectation propagation, exact references."""
