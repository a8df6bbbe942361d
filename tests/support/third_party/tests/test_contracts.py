"""What a plug-in's author writes to know that the parts fit: the contract's tests, inherited."""

from kernel_gym_extras.parts import Fluent, Letters, Newest

from kernel_gym.agents.conformance import AgentContract
from kernel_gym.authors.conformance import AuthorContract
from kernel_gym.memory.conformance import EmbedderConformance


class TestNewest(AgentContract):
    def make(self, seed):
        return Newest(seed)


class TestFluent(AuthorContract):
    def make(self):
        return Fluent()


class TestLetters(EmbedderConformance):
    def make(self):
        return Letters()
