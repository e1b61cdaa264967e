from enum import StrEnum


class Strategy(StrEnum):
    RENDEZVOUS = "rendezvous"
    CONTEST = "contest"
    ROUND_ROBIN = "round_robin"
    PULL = "pull"


from collections.abc import Callable

StrategyOf = Callable[[str], Strategy]
