-- Returns all that is written of a crawl, how many records it has, at how many ended URLs it was last found stalled,
-- why it is held, and how its result is judged (each empty where somebody has written over that), at one moment.
local function noted(field)
  local value = redis.pcall('HGET', TOLD, field)
  return type(value) == 'string' and value or ''
end
return {
  redis.call('HGETALL', CRAWL), redis.call('HLEN', PENDING), noted('stalled'), noted('held'), noted('judging'),
}
