-- KEYS: urgent. ARGV: crawl id, then for each task its key and its priority with the sign changed. Lists those that wait, and
-- looks at twice as many others, to remove what waits no more: what has ended or was cancelled since is forgotten, whoever did that.
local at, new = now_us(), {}
for i = 2, #ARGV, 2 do
  local member = string.format('%016.0f', at + i) .. ' ' .. ARGV[1] .. ' ' .. ARGV[i]
  local _, _, record = listed(KEYS[1], member)
  if record then
    new[#new + 1] = ARGV[i + 1]
    new[#new + 1] = member
  end
end
local stale = {}
for _, member in ipairs(redis.call('ZRANDMEMBER', KEYS[1], #ARGV)) do
  -- Keys of another crawl may hold what is none of trawl's.
  local is_sound, _, _, record = pcall(listed, KEYS[1], member)
  if not is_sound or not record then
    stale[#stale + 1] = member
  end
end
if #stale > 0 then
  redis.call('ZREM', KEYS[1], unpack(stale))
end
if #new > 0 then
  redis.call('ZADD', KEYS[1], unpack(new))
  redis.call('EXPIRE', KEYS[1], 30 * 24 * 3600)
end
return redis.status_reply('OK')
