-- KEYS: failed, pending. ARGV: keys. Takes them out of the list of what failed, each task and request with what it says.
-- Returns how many were in it.
local purged = 0
for _, url in ipairs(ARGV) do
  purged = purged + redis.call('HDEL', KEYS[1], url)
  -- One that has a record again is no dead letter.
  if has_payload(url) and redis.call('HEXISTS', KEYS[2], url) == 0 then
    redis.call('HDEL', recipes_of(KEYS[1]), url)
  end
end
return purged
