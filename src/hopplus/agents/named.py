"""The named agents: `hopplus train NAME`, `RunConfig.for_agent(NAME)`. Their settings are in `runs.agents`."""

ABOUT = {
    "ppo": "plain PPO, each seat for itself",
    "mappo": "PPO with a critic that reads the views of all seats in training, and one policy for all (a baseline)",
    "liam": "PPO with memory, whose state is trained to tell what the others see and do (a baseline)",
    "fcp": "PPO as the best response to a population of self-play runs and their earlier checkpoints (a baseline)",
    "omg": "infers a goal vector of each co-player, models its actions, and conditions its policy on the goals",
    "direct_om": "models its co-players' actions without goals, and learns from search in the true game",
    "hop": "infers which kind of prey each co-player is after, and learns from search in the true game",
    "hop_plus": "has hop's beliefs, learns a world model, and learns from real and imagined rollouts",
    "hop_plus_search": "has hop_plus's models, and learns from search in its learned world",
    "hop_plus_notes": "an older combination, to compare with: goals of a VAE, a regressed world, no trust",
}
"""A line about each agent, by name."""
NAMES = tuple(ABOUT)
"""The names of the agents."""
