"""What an agent does with its models before it acts: beliefs, and later search. It receives functions, no models."""
