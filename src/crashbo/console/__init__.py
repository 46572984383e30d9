"""A local web page for running experiments by hand and watching workers. Torch is imported in a process of its own."""
