-- KEYS: crawl, pending, told. Returns all that is written of a crawl, how many records it has, and at how many ended URLs it was last found
-- stalled, at one moment.
return {redis.call('HGETALL', KEYS[1]), redis.call('HLEN', KEYS[2]), redis.call('HGET', KEYS[3], 'stalled') or ''}
