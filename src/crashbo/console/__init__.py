"""A local web page for running experiments by hand and watching workers. A process of its own fits the models."""
