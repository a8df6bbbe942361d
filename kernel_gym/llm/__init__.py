"""Language model endpoints: the client, its transcripts and its credentials."""
