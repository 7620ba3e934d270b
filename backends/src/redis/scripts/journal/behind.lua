-- KEYS: which run of the server took the stream `journal` in, and by which lease. Returns this run, what the key says, and whether the
-- journal is to be taken in first.
local run, taken = run_id(), redis.call('GET', KEYS[1]) or ''
return {run, taken, string.match(taken, '^%S+') == run and 0 or 1}
