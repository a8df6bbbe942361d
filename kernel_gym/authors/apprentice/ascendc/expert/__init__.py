"""What an expert writes beyond the apprentice: stages in one launch, even blocks, convolutions by taps."""
