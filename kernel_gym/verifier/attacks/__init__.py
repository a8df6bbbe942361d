"""Known attacks on the verifier and honest oddities, one kernel file each, and the code that runs them."""
