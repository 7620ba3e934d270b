-- Returns all that is written of a crawl, how many records it has, and at how many ended URLs it was last found
-- stalled, and why it is held (empty where somebody has written over that), at one moment.
local stalled = redis.pcall('HGET', TOLD, 'stalled')
local held = redis.pcall('HGET', TOLD, 'held')
return {redis.call('HGETALL', CRAWL), redis.call('HLEN', PENDING), type(stalled) == 'string' and stalled or '',
  type(held) == 'string' and held or ''}
