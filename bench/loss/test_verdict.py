"""The judge itself, on logs that were made up."""

import unittest

from verdict import judge
from website import HOSTS, INTERVAL, PAGES, Request, host_of

FAULT = 10.0


def crawl(pages, interval=INTERVAL, begun=0.0):
    """A log in which these pages are served one after the other."""
    return [Request(begun + interval * number, host_of(page), page, 200) for number, page in enumerate(pages)]


class Verdicts(unittest.TestCase):
    def test_a_whole_crawl_that_says_its_end_lost_nothing_and_is_right(self):
        verdict = judge(crawl(range(PAGES)), FAULT, said=1e6)
        self.assertEqual((verdict.lost, verdict.again, verdict.end, verdict.soon), (0, 0, "right", 0))

    def test_a_page_without_an_answer_is_lost_and_an_end_without_it_early(self):
        log = crawl(range(PAGES))
        log[-1].status = None
        verdict = judge(log, FAULT, said=1e6)
        self.assertEqual((verdict.lost, verdict.end), (1, "early"))

    def test_an_end_said_before_the_last_page_is_early(self):
        verdict = judge(crawl(range(PAGES)), FAULT, said=1.0)
        self.assertEqual((verdict.lost, verdict.end), (0, "early"))

    def test_a_crawl_that_says_nothing_never_ends(self):
        self.assertEqual(judge(crawl(range(PAGES)), FAULT, said=None).end, "never")

    def test_a_page_asked_for_again_counts_only_once_it_was_served(self):
        log = crawl(range(PAGES))
        log[3].status = None
        log += crawl([3, 4], begun=1e3)
        self.assertEqual(judge(log, FAULT, said=1e6).again, 1)

    def test_the_page_that_kills_is_not_lost_and_its_deaths_are_counted(self):
        log = crawl(range(PAGES))
        log[7].status = None
        log += [Request(1e3, host_of(7), 7), Request(2e3, host_of(7), 7)]
        verdict = judge(log, FAULT, said=1e6, lethal=7)
        self.assertEqual((verdict.lost, verdict.end, verdict.deaths), (0, "right", 3))

    def test_gaps_count_for_each_host_alone(self):
        log = crawl([0, 4, 1, 9], interval=INTERVAL * 0.3)
        verdict = judge(log, FAULT, said=None)
        self.assertEqual((verdict.soon, verdict.least), (0, round(600 * INTERVAL)))

    def test_a_gap_below_half_the_interval_is_too_short(self):
        self.assertEqual(judge(crawl([0, 1, 2], interval=INTERVAL * 0.4), FAULT, said=None).soon, 2)

    def test_requests_before_a_retry_after_is_over_come_too_soon(self):
        log = crawl([0, 1, 2, 3], interval=2.0)
        log[1].status = 429
        self.assertEqual({request.host for request in log}, {HOSTS[0]})
        self.assertEqual(judge(log, FAULT, said=None, refuses_until=5.0).soon, 1)

    def test_the_time_is_that_from_the_fault_to_the_last_new_page(self):
        log = crawl([0, 1, 2], interval=10.0) + crawl([0], begun=90.0)
        self.assertEqual(judge(log, FAULT, said=None).seconds, 10.0)


if __name__ == "__main__":
    unittest.main()
