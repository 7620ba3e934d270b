-- KEYS: the run of the server that has read the stream `journal`, and the lease by which it did. Returns the
-- current run, the value of the key, and whether the journal has to be read first.
local run, taken = run_id(), redis.call('GET', KEYS[1]) or ''
return {run, taken, string.match(taken, '^%S+') == run and 0 or 1}
