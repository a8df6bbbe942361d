"""Speed benchmarks of the parts; `make bench` runs them."""
