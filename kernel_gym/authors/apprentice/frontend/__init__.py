"""Reads a reference module through torch.export and plans the launches that compute it."""
