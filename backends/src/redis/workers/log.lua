-- KEYS: the log. ARGV: maximum number of entries, maximum size in bytes, then the new entries.
-- Each entry has the sum of the bytes of all entries before it, so that the size of the log is the difference of
-- two. Entries that trawl did not write have none.
local function read(id_and_fields)
  local values = {}
  local fields = id_and_fields and id_and_fields[2] or {}
  for i = 1, #fields, 2 do
    values[fields[i]] = fields[i + 1]
  end
  return tonumber(values.sum) or 0, #(values.entry or '')
end

local log, most, most_bytes = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local before, bytes = read(redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1])
local sum = before + bytes
for i = 3, #ARGV do
  redis.call('XADD', log, '*', 'entry', ARGV[i], 'sum', string.format('%.0f', sum))
  sum = sum + #ARGV[i]
end
redis.call('XTRIM', log, 'MAXLEN', most)
while true do
  local oldest = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
  if not oldest or sum - read(oldest) <= most_bytes then
    break
  end
  redis.call('XDEL', log, oldest[1])
end
return redis.status_reply('OK')
