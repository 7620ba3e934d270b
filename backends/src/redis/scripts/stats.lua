-- KEYS: crawl, pending. Returns all that is written of a crawl, and how many records it has, at one moment.
return {redis.call('HGETALL', KEYS[1]), redis.call('HLEN', KEYS[2])}
