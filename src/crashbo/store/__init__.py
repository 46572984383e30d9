"""Studies that are kept: made, asked, told and corrected in an Optuna storage. Models are fitted only to suggest."""
