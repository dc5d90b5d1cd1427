"""How often something that costs may happen: several times at once, and so many times a second in the long run."""


class Allowance:
    """A bucket of permissions that fills again at a steady rate; `take` one, or be refused.

    >>> allowance = Allowance(burst=2, per_second=1)
    >>> [allowance.take(moment) for moment in (0.0, 0.1, 0.2, 1.3)]
    [True, True, False, True]
    """

    def __init__(self, burst, per_second):
        self.burst, self.per_second = burst, per_second
        self._left, self._counted = float(burst), None

    def take(self, now):
        """True if it may happen at the moment `now`, in seconds of any clock."""
        if self._counted is not None:
            self._left = min(self.burst, self._left + (now - self._counted) * self.per_second)
        self._counted = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
