from __future__ import annotations

from infinity_emb.scheduler.limits import RETRY_MAX_S, DrainRate


def test_before_anything_was_computed_a_retry_makes_sense_after_one_second():
    rate = DrainRate()
    assert rate.tokens_per_s == 0.0
    assert rate.seconds_for(1_000_000) == 1


def test_the_rate_is_tokens_by_the_time_the_batch_took():
    rate = DrainRate()
    rate.observe(500, 10.0, 10.5)
    assert rate.tokens_per_s == 1000.0
    assert rate.seconds_for(2500) == 3


def test_time_that_two_batches_share_counts_once():
    rate = DrainRate()
    rate.observe(100, 0.0, 1.0)
    rate.observe(100, 0.5, 2.0)
    assert rate.tokens_per_s == 100.0


def test_idle_time_does_not_count():
    rate = DrainRate()
    rate.observe(100, 0.0, 1.0)
    rate.observe(100, 900.0, 901.0)
    assert rate.tokens_per_s == 100.0


def test_seconds_are_whole_and_bounded():
    rate = DrainRate()
    rate.observe(10, 0.0, 1.0)
    assert [rate.seconds_for(tokens) for tokens in (0, 1, 11, 10**9)] == [1, 1, 2, RETRY_MAX_S]
    assert type(rate.seconds_for(11)) is int


def test_a_batch_that_took_no_measurable_time_does_not_divide_by_zero():
    rate = DrainRate()
    rate.observe(10, 1.0, 1.0)
    assert rate.tokens_per_s > 0
