-- The clock of all scripts, in us.
local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
