"""What is tuned and what was tried: parameters, space, constraints, options, outcomes, histories, state files."""
