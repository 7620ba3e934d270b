-- ARGV: keys. Removes them from the list of failures, each task and request with its payload. Returns the number
-- removed.
local purged = 0
for _, url in ipairs(ARGV) do
  purged = purged + redis.call('HDEL', FAILED, url)
  -- An entry that has a record again is no dead letter.
  if has_payload(url) and redis.call('HEXISTS', PENDING, url) == 0 then
    redis.call('HDEL', recipes_of(FAILED), url)
  end
end
return purged
