"""Training: the loop, what it is made of, and the events it sends to whoever listens."""
