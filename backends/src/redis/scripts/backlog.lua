-- KEYS: pending. ARGV: how many records to measure. Returns how many there are, and about how many bytes they take.
return {redis.call('HLEN', KEYS[1]), redis.call('MEMORY', 'USAGE', KEYS[1], 'SAMPLES', ARGV[1]) or 0}
