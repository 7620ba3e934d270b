-- KEYS: a runner. ARGV: the digest of the key with which it asks, the time in ms.
-- Returns all fields of the runner, whose key is the one with which it asked first.
redis.call('HSETNX', KEYS[1], 'key', ARGV[1])
redis.call('HSETNX', KEYS[1], 'since', ARGV[2])
redis.call('HSET', KEYS[1], 'asked', ARGV[2])
return redis.call('HGETALL', KEYS[1])
