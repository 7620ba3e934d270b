"""What a crawl did, by the site's log alone."""

import dataclasses

from website import HOSTS, INTERVAL, PAGES

# A gap counts as too short below this part of the interval: what is sent on time may arrive late, and the next one not.
SHORT = 0.5
# Seconds after the first refusal in which requests are no fault: they may have been on their way.
GRACE = 0.5


@dataclasses.dataclass
class Verdict:
    """`lost` pages were never served; `again` are requests for pages that had been served; `end` is right, early (pages
    were missing, or came later) or never; `soon` requests came too soon after the one before, or while their host had
    asked to wait; `least` is the shortest gap in ms; `seconds` is the time from the fault to the last page that was
    served for the first time; `deaths` is how often the page that kills was asked for."""

    lost: int
    again: int
    end: str
    soon: int
    least: int
    seconds: float
    deaths: int = 0


def judge(log, fault, said, lethal=None, refuses_until=0.0):
    """`fault` and `said` are the instants of the fault and of the crawl's word that it has ended, if there was any."""
    first, again = {}, 0
    for request in log:
        if request.status == 200:
            again += request.page in first
            first.setdefault(request.page, request.at)
    missing = PAGES - len(first) - (lethal is not None)
    return Verdict(
        lost=missing,
        again=again,
        end=judge_end(first, missing, said),
        soon=count_soon(log, refuses_until),
        least=round(1000 * min((gap for _, gap in gaps(log)), default=0)),
        seconds=round(max(first.values(), default=fault) - fault, 1),
        deaths=sum(request.page == lethal for request in log),
    )


def judge_end(first, missing, said):
    if said is None:
        return "never"
    return "early" if missing or said < max(first.values()) else "right"


def gaps(log):
    """Each request with the time since the one before it to the same host."""
    for host in HOSTS:
        requests = [request for request in log if request.host == host]
        for before, request in zip(requests, requests[1:]):
            yield request, request.at - before.at


def count_soon(log, refuses_until):
    refusals = [request.at for request in log if request.status == 429]
    told = min(refusals, default=refuses_until) + GRACE
    return sum(gap < SHORT * INTERVAL or request.host == HOSTS[0] and told < request.at < refuses_until
               for request, gap in gaps(log))
