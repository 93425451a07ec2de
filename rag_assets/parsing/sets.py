"""Disjoint sets of numbers: what touches each other, directly or through others."""

from collections import defaultdict


class Sets:
    """Disjoint sets of numbers from 0 on, each named by its lowest number."""

    def __init__(self, count: int = 0) -> None:
        self._parents = list(range(count))

    def add(self) -> int:
        """A set of a new number."""
        self._parents.append(len(self._parents))
        return len(self._parents) - 1

    def find(self, number: int) -> int:
        """Name of the set that holds a number."""
        parents = self._parents
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    def union(self, first: int, second: int) -> None:
        """Make one set of the sets that hold two numbers."""
        first, second = self.find(first), self.find(second)
        if first != second:
            self._parents[max(first, second)] = min(first, second)

    def groups(self) -> list[list[int]]:
        """The numbers of each set, rising; the sets in the order of their names."""
        groups: dict[int, list[int]] = defaultdict(list)
        for number in range(len(self._parents)):
            groups[self.find(number)].append(number)
        return list(groups.values())
