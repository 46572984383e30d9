"""Learning hyperparameters: priors, the most probable ones, and weighted sets of them."""
