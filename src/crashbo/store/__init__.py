"""Studies that are kept: made, asked, told and corrected in an Optuna storage. Torch is imported only to suggest."""
