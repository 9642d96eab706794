"""Search for outputs: greedy, beam, sampling and forced, over one step engine (`regard.nn.types.StepEngine`)."""
