"""The parts of `campaign.py`: texts, systems, cells, their work, claims and pages."""
