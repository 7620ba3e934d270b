-- KEYS: crawl, pending, told. Returns all that is written of a crawl, how many records it has, and at how many ended URLs it was last found
-- stalled (empty where somebody has written over that), at one moment.
local stalled = redis.pcall('HGET', KEYS[3], 'stalled')
return {redis.call('HGETALL', KEYS[1]), redis.call('HLEN', KEYS[2]), type(stalled) == 'string' and stalled or ''}
