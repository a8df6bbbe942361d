"""Experiments: single runs, studies that compare runs, reports, and analyses of finished runs."""
