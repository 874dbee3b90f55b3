"""The time that all members of a changing population have been there, as the program itself knows it."""

import time


class Population:
    """The integral of the number of its members over time."""

    def __init__(self) -> None:
        self._members = 0
        self._sum_ns = 0

    def enter(self, members: int = 1) -> None:
        self._members += members
        self._sum_ns -= members * time.perf_counter_ns()

    def leave(self, members: int = 1) -> None:
        self.enter(-members)

    def seconds(self) -> float:
        """Until now, counted from any fixed moment: differences have a meaning."""
        return (self._sum_ns + self._members * time.perf_counter_ns()) / 1e9
