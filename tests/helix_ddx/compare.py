"""One run against another: the same facts in the same order, as far as the recording can tell."""

from __future__ import annotations

from collections.abc import Sequence

from tests.helix_ddx.shapes import TICK, Token


def differences(recorded: Sequence[Token], simulated: Sequence[Token], ordered: bool = True) -> list[str]:
    """What is wrong with the simulation, in words; nothing when it is as recorded.

    What stays must be there in both. Of a thing with states the recording may have missed some, but not the
    last; those that it saw must come in the same order.
    """
    places: dict[int, int] = {}
    wrong = _match_what_stays(recorded, simulated, places) + _match_states(recorded, simulated, places)
    if ordered and not wrong:
        wrong += _out_of_order(recorded, places)
    return wrong


def _match_what_stays(recorded: Sequence[Token], simulated: Sequence[Token], places: dict[int, int]) -> list[str]:
    known = {(token.name, token.count): place for place, token in enumerate(simulated) if not token.thing}
    seen = {(token.name, token.count) for token in recorded}
    wrong = [f"not recorded: {name} #{count}" for name, count in known if (name, count) not in seen]
    for number, token in enumerate(recorded):
        if not token.thing and (token.name, token.count) in known:
            places[number] = known[token.name, token.count]
        elif not token.thing:
            wrong.append(f"not simulated: {token.name} #{token.count}")
    return wrong


def _match_states(recorded: Sequence[Token], simulated: Sequence[Token], places: dict[int, int]) -> list[str]:
    wrong = []
    things = dict.fromkeys(token.thing for token in (*recorded, *simulated) if token.thing)
    for thing in things:
        ours = [(place, token.name) for place, token in enumerate(simulated) if token.thing == thing]
        begin = 0
        for number, token in enumerate(recorded):
            if token.thing != thing:
                continue
            index = next((index for index in range(begin, len(ours)) if ours[index][1] == token.name), None)
            if index is None:
                wrong.append(f"not simulated: {token.name}")
            else:
                places[number] = ours[index][0]
                begin = index + 1
        if begin < len(ours):
            wrong.append(f"not recorded, and last: {ours[-1][1]}")
    return wrong


def _out_of_order(recorded: Sequence[Token], places: dict[int, int]) -> list[str]:
    wrong = []
    latest = -1
    waiting: list[int] = []
    for number, token in enumerate(recorded):
        # what was clearly seen before this one, and comes last of it in the simulation
        while waiting and token.at - recorded[waiting[0]].at > TICK:
            settled = waiting.pop(0)
            if latest < 0 or places[settled] > places[latest]:
                latest = settled
        if latest >= 0 and places[latest] > places[number]:
            wrong.append(f"{token.name}\n    comes before {recorded[latest].name}")
        waiting.append(number)
    return wrong
