"""The standing adversary: known attacks on the verifier and honest oddities, one kernel file each, and their trial."""
