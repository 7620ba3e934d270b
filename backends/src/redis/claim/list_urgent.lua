-- ARGV: crawl id, then for each task its key and its negated priority. Lists those that wait, and checks twice as
-- many others, to remove those that no longer wait, because they have ended or were cancelled in any way.
local at, new = now_us(), {}
for i = 2, #ARGV, 2 do
  local member = string.format('%016.0f', at + i) .. ' ' .. ARGV[1] .. ' ' .. ARGV[i]
  local _, _, record = listed(URGENT, member)
  if record then
    new[#new + 1] = ARGV[i + 1]
    new[#new + 1] = member
  end
end
local stale = {}
for _, member in ipairs(redis.call('ZRANDMEMBER', URGENT, #ARGV)) do
  -- Keys of another crawl may hold values that trawl did not write.
  local is_sound, _, _, record = pcall(listed, URGENT, member)
  if not is_sound or not record then
    stale[#stale + 1] = member
  end
end
if #stale > 0 then
  redis.call('ZREM', URGENT, unpack(stale))
end
if #new > 0 then
  redis.call('ZADD', URGENT, unpack(new))
  redis.call('EXPIRE', URGENT, 30 * 24 * 3600)
end
return redis.status_reply('OK')
