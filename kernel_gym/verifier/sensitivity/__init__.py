"""Which parts of a network the outputs of a value set show, and how values are drawn so that they do."""
