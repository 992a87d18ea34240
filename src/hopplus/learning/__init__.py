"""Learning from play: rollouts, returns, PPO, and the training step that every agent shares."""
