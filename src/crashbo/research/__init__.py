"""The paper's problems, simulations and robot, reproduced; and the demo."""
