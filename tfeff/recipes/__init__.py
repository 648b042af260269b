"""The papers' runs, from settings to a served model."""
