"""The arithmetic of REINFORCE with a baseline, without torch: what a sampled rewrite is worth.

What stays out: models, gradients and checkpoints (`rag_assets.training.rewriter`), and what a rewrite gains
(`rag_assets.training.rewards`).

Source: R. J. Williams, Simple statistical gradient-following algorithms for connectionist reinforcement learning,
Machine Learning 8, 1992; X. Ma, Y. Gong, P. He, H. Zhao and N. Duan, Query rewriting for retrieval-augmented large
language models, EMNLP 2023. Deviation: the source names a length penalty, but not its form; ours is linear.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Penalties:
    """What is taken off the gain of a rewrite.

    Attributes:
        divergence: For each nat by which the policy makes it likelier than the warmed-up policy does.
        length: For a rewrite that is empty, or twice the longest; in between it grows in a line.
        shortest_tokens: From here on no rewrite is too short.
        longest_tokens: Up to here none is too long.
    """

    divergence: float
    length: float
    shortest_tokens: int
    longest_tokens: int

    def of_length(self, tokens: int) -> float:
        """The penalty of a rewrite of so many tokens."""
        short = (self.shortest_tokens - tokens) / self.shortest_tokens
        long = (tokens - self.longest_tokens) / self.longest_tokens
        return self.length * max(0.0, short, long)

    def reward(self, gain: float, tokens: int, log_probability: float, warmed_up: float) -> float:
        """What a sampled rewrite is worth.

        Over samples of the policy the mean of `log_probability - warmed_up` is the Kullback-Leibler divergence of the
        policy from the warmed-up one.

        Args:
            gain: How much better it did than the question.
            tokens: Its length.
            log_probability: Natural logarithm of its probability under the policy.
            warmed_up: The same under the warmed-up policy.
        """
        return gain - self.divergence * (log_probability - warmed_up) - self.of_length(tokens)


class Baseline:
    """Mean reward of the last steps; 0, what the question itself is worth, before the first.

    Args:
        window: Number of steps.
        rewards: Mean rewards of the steps so far, the oldest first.
    """

    def __init__(self, window: int, rewards: Iterable[float] = ()) -> None:
        self._rewards = deque(rewards, maxlen=window)

    @property
    def value(self) -> float:
        """The baseline of the next step."""
        return sum(self._rewards) / len(self._rewards) if self._rewards else 0.0

    @property
    def rewards(self) -> list[float]:
        """The rewards that it is the mean of."""
        return list(self._rewards)

    def add(self, reward: float) -> None:
        """Count the mean reward of a step."""
        self._rewards.append(reward)
