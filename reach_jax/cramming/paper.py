"""The published sweep over lengths: which fixed length is tried next, given all tried so far.

Coarse: from max(10, m + 1) by 100 while more than .9 of the targets succeed. Fine: back to the last
such length + 10, by 10 until fewer than .1 do. Then one length more, 100 beyond. Nothing above the
cap. A pure function of what is known, so an interrupted sweep goes on as it would have. Source: the
protocol of arXiv 2605.22223.
"""

from collections.abc import Mapping

CAP = 1000  # tokens
COARSE, FINE = 100, 10
HIGH, LOW = 0.9, 0.1


def first_length(m: int) -> int:
    """The shortest length tried with m vectors."""
    return max(10, m + 1)


def next_length(shares: Mapping[int, float], m: int, cap: int = CAP) -> int | None:
    """The next length to try, in tokens; None when the sweep is over.

    Args:
      shares: length -> share of targets that succeeded, of all lengths tried.
      m: prompt vectors.
      cap: greatest length.
    """
    length, fine = first_length(m), first_length(m)
    while length <= cap:
        if length not in shares:
            return length
        if shares[length] <= HIGH:
            break
        fine = length + FINE
        length += COARSE
    while fine <= cap:
        if fine not in shares:
            return fine
        if shares[fine] < LOW:
            last = fine + COARSE
            return last if last <= cap and last not in shares else None
        fine += FINE
    return None
