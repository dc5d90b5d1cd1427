"""The lines that take a job's memory, or its device's, followed from its start to its end."""

from helpers.watching.family_lines import FamilyLines


class JobLines:
    """The job's processes say their lines in a `folder`; `follow` them with every reading of the sampler."""

    def __init__(self):
        self._family, self._member, self._on_device = FamilyLines(), None, False

    @property
    def folder(self):
        return self._family.folder

    def register(self, selector, callback):
        """`callback` is called when a thread has something to say that should be heard soon."""

        def on_news(news):
            if news.are_urgent():
                callback()

        self._family.news.register(selector, on_news)

    def begin(self, pid, on_device, baseline, began):
        """The job's own process has `baseline` bytes that are not the job's, and what it said before is not, either."""
        self._on_device = on_device
        self._family.welcome(on_device=on_device, baseline=baseline, began=began)
        self._member = self._family.members.get(pid)

    def follow(self, sampler, vram):
        self._family.welcome(on_device=self._on_device)
        if self._member:
            self._look(sampler, vram)
            self._member.follower.ask()
        self._family.look(but=self._member)

    def settle(self, sampler, vram):
        """Its function is over: whoever has grown was in it, and can still be told apart."""
        if self._member:
            self._look(sampler, vram)
            self._member.follower.settle(sampler.peak_held)

    def _look(self, sampler, vram):
        if self._on_device:
            self._member.follower.look(vram)
        else:
            self._member.follower.look(sampler.held, sampler.faults, sampler.moment)

    def lines(self, sampler, peak_vram):
        """[(place, bytes)] at the peak."""
        if not self._member:
            return []
        for member in self._family.members.values():  # the last words
            member.follower.look(member.follower.attribution.level)
        if self._on_device:
            return self._member.follower.lines(peak_vram or 0)
        return self._family.lines(self._member, sampler.peak_held, sampler.peak_elsewhere)

    def close(self):
        self._family.close()
