"""A bot over the line protocol of docs/guide/external.md: knocks when it may, else throws its loneliest card."""

import sys

RANKS = "A23456789TJQK"


def friends(card: str, hand: set[str]) -> int:
    """How many cards of the hand could be in a meld with a card."""
    near = {RANKS[place] for place in range(13) if abs(place - RANKS.index(card[0])) <= 2}
    return sum(other[0] == card[0] or (other[1] == card[1] and other[0] in near) for other in hand) - 1


def choose(question: str, answers: list[str], hand: set[str]) -> str:
    """Picks one of the legal answers; of others than throws the first: pass, draw from the stock, or auto."""
    if question != "throw":
        return answers[0]
    if answers[-1] == "big-gin":
        return "big-gin"
    knocks = [answer for answer in answers if answer.startswith("knock")]
    return min(knocks or answers, key=lambda answer: (friends(answer[-2:], hand), -RANKS.index(answer[-2])))


if __name__ == "__main__":
    seat, hand = "", set[str]()
    for line in sys.stdin:
        match line.split():
            case ["protocol", *_]:
                print("ready 1 lonely 1.0", flush=True)
            case ["game", _, "seat", seat, *_]:
                pass
            case ["cards", *cards]:
                hand = set(cards)
            case ["move", mover, "draw" | "take", card] if mover == seat:
                hand.add(card)
            case ["move", mover, "discard" | "knock", card]:
                hand.discard(card)
            case ["ask", question, *words]:
                print(choose(question, " ".join(words).split(" / "), hand), flush=True)
