"""What a job has told about itself so far: its phases, its waiting, its result."""

from dataclasses import replace

from helpers.jobs.task import Failure
from helpers.watching.record import Phase


class Told:
    """Hears the messages of one job; `began` is the moment from which its seconds count."""

    def __init__(self):
        self.began, self.phases, self._stretches, self.idle = 0.0, [], [], None
        self.value = self.failure = None
        self.handlers = {
            "phase_begin": self._on_phase_begin,
            "phase_end": self._on_phase_end,
            "waiting": self._on_waiting,
            "value": self._on_value,
            "failure": self._on_failure,
        }

    @property
    def waiting(self):
        """Stretches in which the device waited; None if nobody measured that."""
        return tuple(self._stretches) if self.idle is not None else None

    def _on_phase_begin(self, message):
        self.phases.append(Phase(message.facts["name"], message.moment - self.began))

    def _on_phase_end(self, message):
        name, items = message.facts["name"], message.facts["items"]
        for place, stretch in reversed(list(enumerate(self.phases))):
            if stretch.name == name and stretch.end is None:
                self.phases[place] = replace(stretch, end=message.moment - self.began, items=items)
                break

    def _on_waiting(self, message):
        stretches = message.facts["stretches"]
        self._stretches += [(start - self.began, end - self.began) for start, end in stretches]
        self.idle = message.facts["idle"]

    def _on_value(self, message):
        self.value = message.payload

    def _on_failure(self, message):
        self.failure = Failure(**message.facts)
